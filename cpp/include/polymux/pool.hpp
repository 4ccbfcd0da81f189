// One pool of worker threads per process, sized by the cores that the process may use.
#pragma once

#include <functional>

namespace polymux {

/// Number of cores this process may run on (affinity and cgroup quota respected), at least 1.
[[nodiscard]] int available_cores() noexcept;

/// The process-wide pool. Threads start with the first task and are named "polymux-N". After a
/// fork, the child creates a new pool at first use and does not inherit the parent's tasks.
/// Thread-safe.
class Pool {
public:
    static Pool& instance();

    /// While an object exists on a worker's thread, that worker counts as waiting for something
    /// outside (for example a disk), and another task may use its core. On other threads it has no
    /// effect.
    class Blocking {
    public:
        Blocking() noexcept;
        ~Blocking();
        Blocking(const Blocking&) = delete;
        Blocking& operator=(const Blocking&) = delete;
    };

    /// Runs `task` on a worker, in order of submission. Tasks must not throw. If no thread or
    /// memory is available, the task runs on the calling thread before this returns.
    void submit(std::function<void()> task);

    [[nodiscard]] int size() const noexcept;

    /// Number of workers that are free for more tasks. A hint: it may be wrong a moment later.
    [[nodiscard]] int spare();

    /// Waits until no task runs or is queued, at most `timeout_ms`. Returns true if idle. Always
    /// returns false when called from a task.
    bool wait_idle(int timeout_ms);

private:
    Pool();
    struct State;
    State* state_;  // Never freed: workers may outlive static destruction.
};

}  // namespace polymux
