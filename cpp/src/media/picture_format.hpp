// Image properties of a video that a muxer needs if the container does not state them.
#pragma once

#include "media/ffmpeg.hpp"

namespace polymux::media {

/// Completes width and height, and for VP9 the pixel format and profile, from the headers in
/// `packet`, a stream's first. Keeps known values, and values that cannot be found. Opens no
/// decoder.
void complete_picture_format(AVCodecParameters& parameters, const AVPacket& packet);

}  // namespace polymux::media
