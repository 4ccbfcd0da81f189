// Any bytes as a media file: safe opening, probe, decode and encode, with limits.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "check.hpp"
#include "polymux/media/convert.hpp"
#include "polymux/media/pcm.hpp"
#include "polymux/media/probe.hpp"

namespace {

using polymux::Result;
using polymux::media::ConvertOptions;
using polymux::media::ConvertReport;
using polymux::media::Limits;

// Limits for one input here; a file that needs more ends with limit_exceeded.
constexpr Limits limits = {.probe_bytes = 1024 * 1024,
                           .streams = 32,
                           .duration_s = 0.3,
                           .sample_rate_hz = 192'000,
                           .channels = 8,
                           .tag_bytes = 64 * 1024,
                           .chapters = 64};

// Far above the size of half a second at 320 kbit/s with tags and cover.
constexpr std::size_t output_cap_bytes = 4U * 1024 * 1024;

ConvertOptions options_for(std::size_t size) {
    ConvertOptions options;
    options.limits = limits;
    options.threads = 1;
    options.strict = size % 7 == 0;
    options.identical_file = size % 5 == 0;
    if (size % 3 == 0) options.bitrate_bps = 64'000;
    if (size % 4 == 0) options.start_s = 0.1;
    return options;
}

template <typename T>
void check_error(const Result<T>& result) {
    if (!result) POLYMUX_FUZZ_CHECK(!result.error().message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    {
        auto source = polymux::media::memory_source(bytes, "fuzz");
        check_error(polymux::media::probe(*source, limits));
    }
    if (size % 8 == 0) {
        auto source = polymux::media::memory_source(bytes, "fuzz");
        std::size_t samples = 0;
        const auto count = [&samples](std::span<const float> block) {
            samples += block.size();
            return true;
        };
        const auto report = polymux::media::decode_pcm(*source, count, {.limits = limits});
        check_error(report);
        if (report) POLYMUX_FUZZ_CHECK(samples == static_cast<std::size_t>(report->samples));
        return 0;
    }
    auto source = polymux::media::memory_source(bytes, "fuzz");
    std::vector<std::byte> output;
    auto sink = polymux::media::memory_sink(&output);
    const Result<ConvertReport> report =
        polymux::media::convert_to_mp3(*source, *sink, options_for(size));
    check_error(report);
    if (report) {
        POLYMUX_FUZZ_CHECK(static_cast<std::size_t>(report->bytes) == output.size());
        POLYMUX_FUZZ_CHECK(output.size() <= output_cap_bytes);
        POLYMUX_FUZZ_CHECK(report->duration_s <= limits.duration_s + 0.1);
    }
    return 0;
}
