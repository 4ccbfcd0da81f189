// What a muxer must know of a video's pictures where the container does not say it.
#pragma once

#include "media/ffmpeg.hpp"

namespace polymux::media {

/// Completes width and height, and for VP9 the pixel format and profile, from the headers in
/// `packet`, a stream's first. What is known already, or cannot be found, stays as it is. No
/// decoder is opened.
void complete_picture_format(AVCodecParameters& parameters, const AVPacket& packet);

}  // namespace polymux::media
