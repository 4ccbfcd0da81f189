// Frames of a stranger's video, at the size and rate that are wanted.
//
//     auto source = polymux::media::open_file("cat.mov");
//     const FrameOptions options{.width = 576, .height = 320, .fps = {8, 1}, .max_frames = 24};
//     auto report = polymux::video::read_frames(**source, on_frame, options);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "polymux/cancel.hpp"
#include "polymux/media/limits.hpp"
#include "polymux/media/source.hpp"
#include "polymux/result.hpp"
#include "polymux/video/frame_rate.hpp"

namespace polymux::video {

/// What a stranger's video may cost, beside `media::Limits`.
struct VideoLimits {
    std::int64_t frame_pixels = 40'000'000;  ///< Of one decoded frame.
    std::int64_t decoded_frames = 50'000;    ///< Until the wanted ones are found.
};

struct FrameOptions {
    int width = 0;   ///< Of the frames given, 1 to 8192.
    int height = 0;  ///< Likewise.
    FrameRate fps = {};
    int max_frames = 1;  ///< 1 to 100,000.
    /// `streams`, `probe_bytes` and `tag_bytes` bound the opening, `duration_s` how far is read.
    media::Limits limits = {};
    VideoLimits video_limits = {};
};

struct FramesReport {
    int frames = 0;  ///< Given; fewer than `max_frames` where the video is shorter.
    int width = 0;
    int height = 0;
    FrameRate fps = {};
    std::string container;  ///< Of the input, FFmpeg's name.
    std::string codec;
    int input_width = 0;  ///< As it is coded: before turning.
    int input_height = 0;
    std::int64_t damaged_packets = 0;
};

/// Receives one frame: rows from the top, three bytes a pixel, red first, nothing between rows.
/// The bytes are valid during the call. Return false to stop with `callback_failed`.
using FrameSink = std::function<bool(std::span<const std::byte>)>;

/// Gives what is seen at 0, 1/fps, 2/fps, ... after the first frame, for as long as the video
/// lasts. A frame is turned as the file says it is to be shown, enlarged or reduced until it covers
/// the wanted size, its proportions kept, and what stands out is cut off on both sides alike.
/// Colours are converted by what the file says of them, and where it says nothing by BT.601 below
/// 720 rows and by BT.709 from there on; those of high dynamic range are not toned down.
///
/// Errors: invalid_argument, unsupported_media where there is no video or no decoder for it,
/// undecodable, encrypted, limit_exceeded, cancelled, callback_failed, and the source's own.
Result<FramesReport> read_frames(media::ByteSource& source, const FrameSink& sink,
                                 const FrameOptions& options, const CancelToken& token = {});

}  // namespace polymux::video
