// Any bytes as a video to read frames from: demultiplexers, decoders, rotation and fitting, with
// limits.
#include <cstddef>
#include <cstdint>
#include <span>

#include "check.hpp"
#include "polymux/video/reader.hpp"

namespace {

using polymux::Result;
using polymux::media::Limits;
using polymux::video::FrameOptions;
using polymux::video::FramesReport;

constexpr Limits limits = {.probe_bytes = 1024 * 1024,
                           .streams = 32,
                           .duration_s = 3600,
                           .sample_rate_hz = 192'000,
                           .channels = 8,
                           .tag_bytes = 64 * 1024,
                           .chapters = 64};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto source = polymux::media::memory_source(std::as_bytes(std::span(data, size)), "fuzz");
    // The requested shape depends on the length, to reach all ways of cropping.
    const FrameOptions options{.width = 8 + static_cast<int>(size % 57),
                               .height = 8 + static_cast<int>(size % 43),
                               .fps = {10, 1},
                               .max_frames = 12,
                               .limits = limits,
                               .video_limits = {.frame_pixels = 512 * 512, .decoded_frames = 60}};
    const auto wanted = static_cast<std::size_t>(options.width * options.height * 3);
    int given = 0;
    const auto count = [&](std::span<const std::byte> frame) {
        POLYMUX_FUZZ_CHECK(frame.size() == wanted);
        ++given;
        return true;
    };
    const Result<FramesReport> report = polymux::video::read_frames(*source, count, options);
    POLYMUX_FUZZ_CHECK(given <= options.max_frames);
    if (!report) {
        POLYMUX_FUZZ_CHECK(!report.error().message.empty());
        return 0;
    }
    POLYMUX_FUZZ_CHECK(report->frames == given);
    POLYMUX_FUZZ_CHECK(given >= 1);
    return 0;
}
