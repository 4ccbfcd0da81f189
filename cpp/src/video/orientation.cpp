#include "video/orientation.hpp"

#include <array>
#include <cstdlib>
#include <cstring>

#include "video/arguments.hpp"

namespace polymux::video {

// A point (x, y) of the image is shown at (a x + c y, b x + d y), and moved into the view.
Orientation orientation_of(std::span<const std::uint8_t> matrix) noexcept {
    std::array<std::int32_t, 9> numbers{};
    if (matrix.size() < sizeof numbers) return {};
    std::memcpy(numbers.data(), matrix.data(), sizeof numbers);
    const std::int64_t a = numbers[0];
    const std::int64_t b = numbers[1];
    const std::int64_t c = numbers[3];
    const std::int64_t d = numbers[4];
    if (std::llabs(a) + std::llabs(d) >= std::llabs(b) + std::llabs(c)) {
        return {.transposed = false, .left_is_right = a < 0, .top_is_bottom = d < 0};
    }
    return {.transposed = true, .left_is_right = c < 0, .top_is_bottom = b < 0};
}

void turn(const Pixels& from, const Orientation& orientation, std::span<std::byte> to) noexcept {
    const int width = orientation.transposed ? from.height : from.width;
    const int height = orientation.transposed ? from.width : from.height;
    std::byte* next = to.data();
    for (int row = 0; row < height; ++row) {
        const std::ptrdiff_t down = orientation.top_is_bottom ? height - 1 - row : row;
        if (orientation.upright()) {
            const auto bytes = static_cast<std::size_t>(width) * bytes_per_pixel;
            std::memcpy(next, from.first + down * from.row_bytes, bytes);
            next += bytes;
            continue;
        }
        for (int column = 0; column < width; ++column, next += bytes_per_pixel) {
            const std::ptrdiff_t across = orientation.left_is_right ? width - 1 - column : column;
            const std::ptrdiff_t x = orientation.transposed ? down : across;
            const std::ptrdiff_t y = orientation.transposed ? across : down;
            std::memcpy(next, from.first + y * from.row_bytes + x * bytes_per_pixel,
                        bytes_per_pixel);
        }
    }
}

}  // namespace polymux::video
