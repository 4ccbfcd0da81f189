// The thread that drives a session's engine for event loops.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "transport/engine.hpp"

namespace polymux::transport {

/// It takes no lock of other code, in particular not Python's, so a lock holder may wait for it.
class IoThread {
public:
    static Result<std::unique_ptr<IoThread>> start(std::unique_ptr<Engine> engine);

    void post(std::shared_ptr<Exchange> exchange);

    /// Ends all exchanges, then the thread. A thread that does not end in time is abandoned.
    void stop(milliseconds max_wait) noexcept;

private:
    /// Shared with the thread, which may be abandoned.
    struct Shared {
        std::unique_ptr<Engine> engine;
        std::mutex mutex;
        std::condition_variable changed;
        bool ended = false;
    };

    static void* run(void* shared);

    std::shared_ptr<Shared> shared_;
    std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace polymux::transport
