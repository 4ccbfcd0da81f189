// The thread that drives a session's engine for event loops.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "transport/engine.hpp"

namespace polymux::transport {

/// It takes no lock of anybody else, above all not Python's, so that whoever holds one may wait for
/// it.
class IoThread {
public:
    static Result<std::unique_ptr<IoThread>> start(std::unique_ptr<Engine> engine);

    void post(std::shared_ptr<Exchange> exchange);

    /// Ends everything that runs, then the thread. One that does not end in time is left behind.
    void stop(milliseconds max_wait) noexcept;

private:
    /// Shared with the thread, which may be left behind.
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
