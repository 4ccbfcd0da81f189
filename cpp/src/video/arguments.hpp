// Argument checks for reading and writing a video.
#pragma once

#include <string>
#include <utility>

#include "polymux/result.hpp"
#include "polymux/video/frame_rate.hpp"

namespace polymux::video {

inline constexpr int max_side = 8192;      ///< Pixels.
inline constexpr int bytes_per_pixel = 3;  ///< Red, green, blue.

[[nodiscard]] inline bool is_side(int pixels) noexcept {
    return pixels >= 1 && pixels <= max_side;
}

[[nodiscard]] inline Error invalid(std::string message) {
    return Error{.code = ErrorCode::invalid_argument, .message = std::move(message)};
}

/// For a frame rate that is not usable.
[[nodiscard]] inline Error invalid_fps(const FrameRate& fps) {
    return invalid("fps: out of range (got " + std::to_string(fps.numerator) + "/" +
                   std::to_string(fps.denominator) +
                   ", allowed 0.01 to 1000 frames per second, with a numerator of at most 1000000 "
                   "and a denominator of at most 100000)");
}

}  // namespace polymux::video
