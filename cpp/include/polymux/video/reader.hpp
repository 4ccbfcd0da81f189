// Reads frames of an untrusted video at the requested size and rate.
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

/// Limits for untrusted video, in addition to `media::Limits`.
struct VideoLimits {
    std::int64_t frame_pixels = 40'000'000;  ///< Pixels of one decoded frame.
    std::int64_t decoded_frames = 50'000;    ///< Frames decoded until the requested ones are found.
};

struct FrameOptions {
    int width = 0;   ///< Width of the output frames, 1 to 8192.
    int height = 0;  ///< Height of the output frames, 1 to 8192.
    FrameRate fps = {};
    int max_frames = 1;  ///< 1 to 100,000.
    /// `streams`, `probe_bytes` and `tag_bytes` limit the opening, `duration_s` how far to read.
    media::Limits limits = {};
    VideoLimits video_limits = {};
};

struct FramesReport {
    int frames = 0;  ///< Delivered; less than `max_frames` if the video is shorter.
    int width = 0;
    int height = 0;
    FrameRate fps = {};
    std::string container;  ///< FFmpeg's name of the input's container.
    std::string codec;
    int input_width = 0;  ///< As coded, before rotation.
    int input_height = 0;
    std::int64_t damaged_packets = 0;
};

/// Receives one frame: rows from the top, three bytes a pixel, red first, nothing between rows. The
/// bytes are valid during the call. Return false to stop with `callback_failed`.
using FrameSink = std::function<bool(std::span<const std::byte>)>;

/// Delivers the frames shown at 0, 1/fps, 2/fps, ... after the first frame, for the length of the
/// video. Each frame is rotated as the file states, scaled with constant proportions until it
/// covers the requested size, and cropped equally on both sides. Colors are converted by the file's
/// metadata. Without metadata, BT.601 applies below 720 rows, otherwise BT.709. High dynamic range
/// is not tone-mapped.
///
/// Errors: `invalid_argument`, `unsupported_media` if there is no video or no decoder for it,
/// `undecodable`, `encrypted`, `limit_exceeded`, `cancelled`, `callback_failed`, and errors of the
/// source.
Result<FramesReport> read_frames(media::ByteSource& source, const FrameSink& sink,
                                 const FrameOptions& options, const CancelToken& token = {});

}  // namespace polymux::video
