// libswscale's context as an owning C++ type.
#pragma once

extern "C" {
#include <libswscale/swscale.h>
}

#include <memory>

#include "media/ffmpeg.hpp"

namespace polymux::video {

struct FreeScaler {
    void operator()(SwsContext* context) const noexcept { sws_freeContext(context); }
};
using UniqueScaler = std::unique_ptr<SwsContext, FreeScaler>;

/// Exact arithmetic, and full color resolution if one side has it.
inline constexpr int scaler_flags =
    SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP;

/// libswscale's value for unchanged brightness, contrast or saturation.
inline constexpr int unchanged = 1 << 16;

/// A frame with room for pixels, aligned for libswscale; empty if out of memory.
[[nodiscard]] media::UniqueFrame new_frame(int width, int height, AVPixelFormat format);

}  // namespace polymux::video
