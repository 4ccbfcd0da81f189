// Exact frame rates.
#pragma once

namespace polymux::video {

/// Frames per second as a fraction: {30'000, 1001} is 29.97.
struct FrameRate {
    int numerator = 0;
    int denominator = 1;

    [[nodiscard]] double per_second() const noexcept {
        return static_cast<double>(numerator) / denominator;
    }
    /// At most 1,000,000 over 100,000, and from one frame in 100 s to 1,000 frames a second.
    [[nodiscard]] bool usable() const noexcept {
        if (numerator < 1 || numerator > 1'000'000) return false;
        if (denominator < 1 || denominator > 100'000) return false;
        return per_second() >= 0.01 && per_second() <= 1000.0;
    }
};

}  // namespace polymux::video
