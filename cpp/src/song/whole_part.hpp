// Rounds down without a function call: the oldest supported processors have no instruction for it,
// and the search spends most of its time here.
#pragma once

namespace polymux::song {

/// `std::floor` for values in the range of `int`.
[[nodiscard]] constexpr int whole_part(float value) noexcept {
    const int cut = static_cast<int>(value);
    return static_cast<float>(cut) > value ? cut - 1 : cut;
}

}  // namespace polymux::song
