// The clock of one fetch, the caller's wish to end it, and the caller's turns.
#pragma once

#include <chrono>

#include "polymux/transport/fetch.hpp"

namespace polymux::transport {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// How long anything waits before it looks at the monitor again.
inline constexpr milliseconds check_interval{20};

/// A deadline that passed; `limit` is its name, a literal.
[[nodiscard]] Error timeout_error(std::string_view limit);

class FetchMonitor {
public:
    FetchMonitor(milliseconds total, FetchCallback callback, const CancelToken& cancel)
        : end_(Clock::now() + total), callback_(callback), cancel_(cancel) {}

    /// Cancellation, the deadline of it all, and the caller, who may end it.
    Result<void> check() {
        const Clock::time_point now = Clock::now();
        last_check_ = now;
        if (cancel_.cancelled()) {
            return Error{.code = ErrorCode::cancelled, .message = "the fetch was cancelled"};
        }
        if (now >= end_) return timeout_error("total");
        return callback_(progress);
    }
    /// The same where the last look is a while ago.
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
