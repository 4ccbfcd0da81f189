// How a decoded picture is to be turned before it is shown.
#pragma once

#include <cstdint>
#include <span>

namespace polymux::video {

/// First rows become columns, or not; then sides are changed.
struct Orientation {
    bool transposed = false;
    bool left_is_right = false;
    bool top_is_bottom = false;

    [[nodiscard]] bool upright() const noexcept {
        return !transposed && !left_is_right && !top_is_bottom;
    }
};

/// Of a display matrix as containers have it: nine numbers of 32 bits, in the machine's order. The
/// nearest of the eight ways that keep pixels whole; upright where it is no such matrix.
[[nodiscard]] Orientation orientation_of(std::span<const std::uint8_t> matrix) noexcept;

/// Pixels of three bytes in rows `row_bytes` apart.
struct Pixels {
    const std::uint8_t* first = nullptr;
    std::ptrdiff_t row_bytes = 0;
    int width = 0;
    int height = 0;
};

/// Writes the turned picture to `to`, row by row with nothing between; `to` has room for it.
void turn(const Pixels& from, const Orientation& orientation, std::span<std::byte> to) noexcept;

}  // namespace polymux::video
