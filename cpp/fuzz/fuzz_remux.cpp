// Any bytes as one input of a remux, and as two: demultiplexers, timestamps and muxers, with
// limits.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "check.hpp"
#include "polymux/media/remux.hpp"

namespace {

using polymux::Result;
using polymux::media::ByteSource;
using polymux::media::Limits;
using polymux::media::RemuxContainer;
using polymux::media::RemuxReport;

constexpr Limits limits = {.probe_bytes = 1024 * 1024,
                           .streams = 32,
                           .duration_s = 3600,
                           .sample_rate_hz = 192'000,
                           .channels = 8,
                           .tag_bytes = 64 * 1024,
                           .chapters = 64};

constexpr std::array containers = {RemuxContainer::automatic, RemuxContainer::mp4,
                                   RemuxContainer::matroska, RemuxContainer::webm};

// Above four times the largest input with its index of one-byte packets, tags and chapters.
constexpr std::size_t output_cap_bytes = 32U * 1024 * 1024;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    const bool two = size % 5 == 0;
    const auto whole = polymux::media::memory_source(two ? bytes.first(size / 2) : bytes, "fuzz");
    const auto other = polymux::media::memory_source(bytes.subspan(size / 2), "fuzz");
    const std::array<ByteSource*, 2> sources = {whole.get(), other.get()};
    std::vector<std::byte> output;
    const auto sink = polymux::media::memory_sink(&output);
    const Result<RemuxReport> report =
        polymux::media::remux(std::span(sources).first(two ? 2 : 1), *sink,
                              {.container = containers.at(size % 4), .limits = limits});
    if (!report) {
        POLYMUX_FUZZ_CHECK(!report.error().message.empty());
        return 0;
    }
    POLYMUX_FUZZ_CHECK(static_cast<std::size_t>(report->bytes) == output.size());
    POLYMUX_FUZZ_CHECK(output.size() <= output_cap_bytes);
    POLYMUX_FUZZ_CHECK(report->duration_s <= limits.duration_s);
    return 0;
}
