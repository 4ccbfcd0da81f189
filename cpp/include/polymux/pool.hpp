// One pool of worker threads per process, sized by the cores this process may use.
#pragma once

#include <functional>

namespace polymux {

/// Number of cores this process may run on (affinity and cgroup quota respected), at least 1.
[[nodiscard]] int available_cores() noexcept;

/// The process-wide pool. Threads start with the first task and are named "polymux-N". After a
/// fork the child gets a fresh pool at its first use; the parent's tasks are not inherited.
/// Thread-safe.
class Pool {
public:
    static Pool& instance();

    /// While one lives on a worker's thread, that worker counts as waiting for something outside,
    /// a disk say, and another task may use its core. Elsewhere it does nothing.
    class Blocking {
    public:
        Blocking() noexcept;
        ~Blocking();
        Blocking(const Blocking&) = delete;
        Blocking& operator=(const Blocking&) = delete;
    };

    /// Runs `task` on a worker, in order of submission. Tasks must not throw. Where no thread or
    /// memory is to be had, the task runs on the calling thread before this returns.
    void submit(std::function<void()> task);

    [[nodiscard]] int size() const noexcept;

    /// Workers that would be free for more tasks now. A hint: it may be wrong a moment later.
    [[nodiscard]] int spare();

    /// Waits until no task runs or waits, at most `timeout_ms`. True when idle; never so when
    /// called from a task.
    bool wait_idle(int timeout_ms);

private:
    Pool();
    struct State;
    State* state_;  // Never freed: workers may outlive static destruction.
};

}  // namespace polymux
