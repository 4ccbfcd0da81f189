// Tracks the deadline of one fetch and its cancellation, and calls the caller's callback.
#pragma once

#include <chrono>

#include "polymux/transport/fetch.hpp"

namespace polymux::transport {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Maximum time that any wait lasts before it checks the monitor again.
inline constexpr milliseconds check_interval{20};

/// The error for an expired deadline; `limit` is its name, a literal.
[[nodiscard]] Error timeout_error(std::string_view limit);

class FetchMonitor {
public:
    FetchMonitor(milliseconds total, FetchCallback callback, const CancelToken& cancel)
        : end_(Clock::now() + total), callback_(callback), cancel_(cancel) {}

    /// Checks cancellation and the total deadline, and calls the callback, which may end the fetch.
    Result<void> check() {
        const Clock::time_point now = Clock::now();
        last_check_ = now;
        if (cancel_.cancelled()) {
            return Error{.code = ErrorCode::cancelled, .message = "the download was canceled"};
        }
        if (now >= end_) return timeout_error("total");
        return callback_(progress);
    }
    /// The same, if the last check was some time ago.
    Result<void> check_if_due() {
        if (Clock::now() - last_check_ < check_interval) return {};
        return check();
    }

    FetchProgress progress;

private:
    Clock::time_point end_;
    Clock::time_point last_check_{};
    FetchCallback callback_;
    const CancelToken& cancel_;
};

}  // namespace polymux::transport
