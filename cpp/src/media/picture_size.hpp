// The size of a video's pictures where the container does not say it.
#pragma once

#include "media/ffmpeg.hpp"

namespace polymux::media {

/// Sets width and height from the headers in `packet`, if they are not known yet and the codec
/// has a parser that finds them. No decoder is opened.
void complete_picture_size(AVCodecParameters& parameters, const AVPacket& packet);

}  // namespace polymux::media
