// Argument checks for reading and writing a video.
#pragma once

#include <string>
#include <utility>

#include "polymux/result.hpp"

namespace polymux::video {

inline constexpr int max_side = 8192;      ///< Pixels.
inline constexpr int bytes_per_pixel = 3;  ///< Red, green, blue.

[[nodiscard]] inline bool is_side(int pixels) noexcept {
    return pixels >= 1 && pixels <= max_side;
}

[[nodiscard]] inline Error invalid(std::string message) {
    return Error{.code = ErrorCode::invalid_argument, .message = std::move(message)};
}

}  // namespace polymux::video
