// Selects the FFmpeg encoder of a video, and sets the requested quality.
#pragma once

#include "media/ffmpeg.hpp"
#include "polymux/video/writer.hpp"

namespace polymux::video {

/// Parameters for opening an encoder; width and height are even.
struct EncoderConfig {
    int width = 0;
    int height = 0;
    FrameRate fps = {};
    int quality = 75;
    int threads = 1;
    bool global_header = false;
};

/// Opens the first encoder that starts. Errors: encoder_failed, which names the attempted ones.
Result<media::UniqueCodecContext> open_encoder(VideoCodec codec, const EncoderConfig& config);

}  // namespace polymux::video
