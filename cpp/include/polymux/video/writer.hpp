// Writes frames into an MP4 that common players support and that can be played while it is loaded.
//
//     auto sink = polymux::media::create_file_sink("waves.mp4");
//     auto writer = polymux::video::VideoWriter::create(**sink, {.width = 576, .height = 320,
//                                                                .fps = {8, 1}});
//     for (const auto& frame : frames) (*writer)->write(frame);
//     auto report = (*writer)->finish();
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "polymux/cancel.hpp"
#include "polymux/media/sink.hpp"
#include "polymux/result.hpp"
#include "polymux/video/frame_rate.hpp"

namespace polymux::video {

/// `automatic` is H.264 if the available FFmpeg has an encoder for it that starts (libx264,
/// libopenh264, or a hardware encoder), otherwise VP9.
enum class VideoCodec : std::uint8_t { automatic, h264, vp9 };

struct VideoFormat {
    int width = 0;   ///< Pixels, 1 to 8192.
    int height = 0;  ///< Pixels, 1 to 8192.
    FrameRate fps = {};
};

struct VideoWriterOptions {
    VideoCodec codec = VideoCodec::automatic;
    int quality = 75;  ///< 1 (smallest file) to 100 (best image); 75 looks like the original.
    int threads = 0;   ///< Maximum for the encoder; 0 means all cores, up to 16.
};

struct VideoReport {
    std::string codec;    ///< "h264" or "vp9".
    std::string encoder;  ///< FFmpeg's encoder name, "libvpx-vp9".
    int width = 0;        ///< Of the video: even.
    int height = 0;
    FrameRate fps = {};  ///< In lowest terms.
    std::int64_t frames = 0;
    double duration_s = 0;
    std::int64_t bytes = 0;
};

/// Writes frames of one size and equal duration as 8-bit 4:2:0, BT.709, limited range, with
/// matching tags. These codecs need even sizes: if width or height is odd, the last column or row
/// is repeated. The index is at the front of the file. Used by one thread at a time.
class VideoWriter {
public:
    virtual ~VideoWriter() = default;
    VideoWriter(const VideoWriter&) = delete;
    VideoWriter& operator=(const VideoWriter&) = delete;

    /// `sink` must support patching and reading back, and must outlive the writer. Without `finish`
    /// it stays uncommitted. Errors: invalid_argument, encoder_failed if no encoder starts,
    /// out_of_memory.
    static Result<std::unique_ptr<VideoWriter>> create(media::ByteSink& sink,
                                                       const VideoFormat& format,
                                                       const VideoWriterOptions& options = {},
                                                       const CancelToken& token = {});

    /// Writes the next frame: rows from the top, three bytes a pixel, red first, nothing between
    /// rows. Errors: `invalid_argument` if the size differs, `cancelled`, `encoder_failed`, and
    /// errors of the sink. After any error the writer accepts no more frames.
    virtual Result<void> write(std::span<const std::byte> rgb) = 0;

    /// Completes the file and commits the sink. Call it once. Errors: invalid_argument if no frame
    /// was written, and those of `write`.
    virtual Result<VideoReport> finish() = 0;

    /// FFmpeg's name of the selected encoder.
    [[nodiscard]] virtual const std::string& encoder() const noexcept = 0;

protected:
    VideoWriter() = default;
};

}  // namespace polymux::video
