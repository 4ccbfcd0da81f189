// Cancellation through one flag that the requester and the worker share.
#pragma once

#include <atomic>
#include <memory>

namespace polymux {

/// Copies share one flag. Thread-safe; setting it is async-signal-safe. A function that accepts a
/// token checks it at least every few milliseconds.
class CancelToken {
public:
    CancelToken() : flag_(std::make_shared<std::atomic<bool>>(false)) {}

    void cancel() const noexcept { flag_->store(true, std::memory_order_relaxed); }
    [[nodiscard]] bool cancelled() const noexcept { return flag_->load(std::memory_order_relaxed); }

private:
    std::shared_ptr<std::atomic<bool>> flag_;
};

}  // namespace polymux
