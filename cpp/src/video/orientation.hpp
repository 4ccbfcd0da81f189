// How to rotate a decoded image for display.
#pragma once

#include <cstdint>
#include <span>

namespace polymux::video {

/// Optionally transpose rows and columns first, then flip sides.
struct Orientation {
    bool transposed = false;
    bool left_is_right = false;
    bool top_is_bottom = false;

    [[nodiscard]] bool upright() const noexcept {
        return !transposed && !left_is_right && !top_is_bottom;
    }
};

/// From a container's display matrix: nine 32-bit numbers in native byte order. The nearest of the
/// eight orientations that keep pixels whole; upright if invalid.
[[nodiscard]] Orientation orientation_of(std::span<const std::uint8_t> matrix) noexcept;

/// Pixels of three bytes in rows `row_bytes` apart.
struct Pixels {
    const std::uint8_t* first = nullptr;
    std::ptrdiff_t row_bytes = 0;
    int width = 0;
    int height = 0;
};

/// Writes the rotated image to `to`, row by row without padding; `to` must be large enough.
void turn(const Pixels& from, const Orientation& orientation, std::span<std::byte> to) noexcept;

}  // namespace polymux::video
