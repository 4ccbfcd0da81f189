// Demuxes and decodes one video stream; returns its frames in display order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "media/ffmpeg.hpp"
#include "media/opened_input.hpp"
#include "polymux/video/reader.hpp"
#include "video/orientation.hpp"

namespace polymux::video {

/// One pass over one video. Not thread-safe.
class FrameDecoder {
public:
    /// Errors: unsupported_media, undecodable, encrypted, limit_exceeded, out_of_memory.
    static Result<std::unique_ptr<FrameDecoder>> open(media::OpenedInput& input,
                                                      const VideoLimits& limits);

    /// Returns the next frame, which the caller may move from; null at the end.
    Result<AVFrame*> next();

    /// Seconds after the first frame, never going back.
    [[nodiscard]] double time_s() const noexcept { return time_s_; }
    /// Display duration of the frame in seconds, as far as known.
    [[nodiscard]] double length_s() const noexcept { return length_s_; }
    [[nodiscard]] double pixel_aspect(AVFrame& frame) const;
    [[nodiscard]] Orientation orientation(const AVFrame& frame) const;
    [[nodiscard]] std::string codec_name() const;
    [[nodiscard]] std::int64_t damaged_packets() const noexcept { return damaged_packets_; }

private:
    FrameDecoder(media::OpenedInput& input, const VideoLimits& limits)
        : input_(input), limits_(limits) {}
    Result<void> choose_stream();
    Result<void> open_decoder();
    Result<void> check_size(int width, int height) const;
    /// Sends another packet, or the end, to the decoder.
    Result<void> feed();
    Result<void> accept(const AVFrame& frame);
    [[nodiscard]] double usual_length_s() const;

    media::OpenedInput& input_;
    VideoLimits limits_;
    AVStream* stream_ = nullptr;  // Owned by input_.
    media::UniqueCodecContext decoder_;
    media::UniquePacket packet_;
    media::UniqueFrame frame_;
    bool packets_ended_ = false;
    int empty_reads_ = 0;
    std::optional<std::int64_t> first_timestamp_;
    double time_s_ = 0;
    double length_s_ = 0;
    std::int64_t decoded_frames_ = 0;
    std::int64_t damaged_packets_ = 0;
};

}  // namespace polymux::video
