// The whole part of a number, without a call: the oldest processors that this runs on have no
// instruction for it, and the search does little else.
#pragma once

namespace polymux::song {

/// `std::floor` of what an `int` can hold.
[[nodiscard]] constexpr int whole_part(float value) noexcept {
    const int cut = static_cast<int>(value);
    return static_cast<float>(cut) > value ? cut - 1 : cut;
}

}  // namespace polymux::song
