// Which encoder of the FFmpeg at hand writes a video, and how it is told what quality is wanted.
#pragma once

#include "media/ffmpeg.hpp"
#include "polymux/video/writer.hpp"

namespace polymux::video {

/// What an encoder is opened with; width and height are even.
struct EncoderConfig {
    int width = 0;
    int height = 0;
    FrameRate fps = {};
    int quality = 75;
    int threads = 1;
    bool global_header = false;
};

/// Opens the first encoder that starts. Errors: encoder_failed, which names what was tried.
Result<media::UniqueCodecContext> open_encoder(VideoCodec codec, const EncoderConfig& config);

}  // namespace polymux::video
