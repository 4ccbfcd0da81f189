// Reporting interval and elapsed time of a call.
#pragma once

#include <chrono>

namespace polymux::media {

using Clock = std::chrono::steady_clock;

inline constexpr std::chrono::milliseconds progress_interval{100};

[[nodiscard]] inline double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace polymux::media
