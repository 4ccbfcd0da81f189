// The clock of one fetch, the caller's wish to end it, and the caller's turns.
#pragma once

#include <chrono>

#include "polymux/transport/fetch.hpp"

namespace polymux::transport {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// How long anything waits before it looks at the watch again.
inline constexpr milliseconds turn_interval{20};

/// A deadline that passed; `limit` is its name, a literal.
[[nodiscard]] Error passed_deadline(std::string_view limit);

class FetchWatch {
public:
    FetchWatch(milliseconds total, FetchTurn turn, const CancelToken& cancel)
        : end_(Clock::now() + total), turn_(turn), cancel_(cancel) {}

    /// Cancellation, the deadline of it all, and the caller, who may end it.
    Result<void> look() {
        const Clock::time_point now = Clock::now();
        last_look_ = now;
        if (cancel_.cancelled()) {
            return Error{.code = ErrorCode::cancelled, .message = "the fetch was cancelled"};
        }
        if (now >= end_) return passed_deadline("total");
        return turn_(progress);
    }
    /// The same where the last look is a while ago.
    Result<void> look_if_due() {
        if (Clock::now() - last_look_ < turn_interval) return {};
        return look();
    }

    FetchProgress progress;

private:
    Clock::time_point end_;
    Clock::time_point last_look_{};
    FetchTurn turn_;
    const CancelToken& cancel_;
};

}  // namespace polymux::transport
