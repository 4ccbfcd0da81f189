// Any bytes as MPEG audio frames: headers, side information, and the Xing frame over them.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "check.hpp"
#include "polymux/media/mp3/frame.hpp"
#include "polymux/media/mp3/xing.hpp"

using polymux::media::mp3::FrameHeader;
using polymux::media::mp3::XingFrame;
using polymux::media::mp3::XingSettings;

namespace {

void check_header(const FrameHeader& header) {
    // The shortest legal frame has 24 bytes (8 kbit/s at 24 kHz), the longest 2,881.
    POLYMUX_FUZZ_CHECK(header.bitrate_bps > 0 && header.sample_rate_hz > 0);
    POLYMUX_FUZZ_CHECK(header.frame_bytes >= 24 && header.frame_bytes <= 2'881);
    POLYMUX_FUZZ_CHECK(header.side_info_bytes() >= 9 && header.side_info_bytes() <= 32);
    POLYMUX_FUZZ_CHECK(polymux::media::mp3::version_of(header.sample_rate_hz) == header.version);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::span<const std::byte> rest = std::as_bytes(std::span(data, size));
    XingSettings settings;
    settings.bitrate_bps = size % 2 == 0 ? 128'000 : 0;
    settings.as_ffmpeg = size % 3 == 0;
    XingFrame xing(settings);
    const std::vector<std::byte> placeholder = xing.placeholder();
    std::int64_t frames = 0;
    std::int64_t bytes = 0;
    while (!rest.empty()) {
        const auto header = polymux::media::mp3::parse_header(rest);
        if (header) check_header(*header);
        if (!header || static_cast<std::size_t>(header->frame_bytes) > rest.size()) {
            rest = rest.subspan(1);
            continue;
        }
        const auto frame = rest.first(static_cast<std::size_t>(header->frame_bytes));
        if (const auto side = polymux::media::mp3::parse_side_info(*header, frame)) {
            POLYMUX_FUZZ_CHECK(side->main_data_begin_bytes >= 0 &&
                               side->main_data_begin_bytes < 512);
            POLYMUX_FUZZ_CHECK(side->main_data_bits >= 0);
        }
        xing.add_frame(frame);
        ++frames;
        bytes += header->frame_bytes;
        rest = rest.subspan(frame.size());
    }
    POLYMUX_FUZZ_CHECK(xing.frames() == frames && xing.audio_bytes() == bytes);
    POLYMUX_FUZZ_CHECK(xing.finish(frames * 1'152).size() == placeholder.size());
    POLYMUX_FUZZ_CHECK(xing.finish(0).size() == placeholder.size());
    return 0;
}
