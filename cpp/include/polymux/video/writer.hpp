// Frames into an MP4 that plays everywhere and while it is loaded.
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

/// `automatic` is H.264 where the FFmpeg at hand has an encoder for it that starts (libx264,
/// libopenh264, or one of the hardware), else VP9.
enum class VideoCodec : std::uint8_t { automatic, h264, vp9 };

struct VideoFormat {
    int width = 0;   ///< Pixels, 1 to 8192.
    int height = 0;  ///< Likewise.
    FrameRate fps = {};
};

struct VideoWriterOptions {
    VideoCodec codec = VideoCodec::automatic;
    int quality = 75;  ///< 1 (smallest file) to 100 (best picture); 75 looks like the original.
    int threads = 0;   ///< Of the encoder, at most; 0 is all cores, 16 at most.
};

struct VideoReport {
    std::string codec;    ///< "h264" or "vp9".
    std::string encoder;  ///< FFmpeg's name of it, "libvpx-vp9".
    int width = 0;        ///< Of the video: even.
    int height = 0;
    FrameRate fps = {};  ///< In lowest terms.
    std::int64_t frames = 0;
    double duration_s = 0;
    std::int64_t bytes = 0;
};

/// Writes frames of one size, each shown as long as every other: 8-bit 4:2:0, BT.709, limited
/// range, and tagged so. Codecs of this kind want even sizes: where width or height is odd, the
/// last column or row is shown twice. The index stands at the front. One thread at a time uses it.
class VideoWriter {
public:
    virtual ~VideoWriter() = default;
    VideoWriter(const VideoWriter&) = delete;
    VideoWriter& operator=(const VideoWriter&) = delete;

    /// `sink`, which must be able to patch and to be read back, outlives the writer. Without
    /// `finish` it is left uncommitted.
    /// Errors: invalid_argument, encoder_failed where no encoder starts, out_of_memory.
    static Result<std::unique_ptr<VideoWriter>> create(media::ByteSink& sink,
                                                       const VideoFormat& format,
                                                       const VideoWriterOptions& options = {},
                                                       const CancelToken& token = {});

    /// The next frame: rows from the top, three bytes a pixel, red first, nothing between rows.
    /// Errors: invalid_argument where the size is another, cancelled, encoder_failed, and the
    /// sink's own. After any the writer takes no more.
    virtual Result<void> write(std::span<const std::byte> rgb) = 0;

    /// Completes the file and commits the sink. Once. Errors: invalid_argument where no frame was
    /// written, and those of `write`.
    virtual Result<VideoReport> finish() = 0;

    /// FFmpeg's name of the encoder that was chosen.
    [[nodiscard]] virtual const std::string& encoder() const noexcept = 0;

protected:
    VideoWriter() = default;
};

}  // namespace polymux::video
