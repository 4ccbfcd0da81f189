#include "polymux/pool.hpp"

#include <cxxabi.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>

namespace polymux {

namespace {

using Task = std::function<void()>;

/// Signals go to the program's threads, which have handlers. Signals that a thread itself causes
/// cannot be blocked in a useful way.
sigset_t signals_of_others() noexcept {
    sigset_t signals;
    ::sigfillset(&signals);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
        ::sigdelset(&signals, own);
    }
    return signals;
}

// A forced unwind has no exception object: the C++ ABI defines the reference to it as null.
__attribute__((no_sanitize("null"))) void run(const Task& task) {
    // Tasks must not throw, but one that does must not end the process.
    try {
        task();
#ifdef __GLIBCXX__
    } catch (const abi::__forced_unwind&) {
        // The task called pthread_exit, as some interpreters do to end threads that outlive them.
        throw;
    } catch (...) {
#else
    } catch (const std::exception&) {
        // Other C++ libraries have no class of forced unwinds, and cannot continue one that
        // catch (...) stopped.
#endif
    }
}

}  // namespace

struct Pool::State {
    const pid_t process = ::getpid();
    const int size = Pool::instance().size();
    std::mutex mutex;
    std::condition_variable work_arrived;
    std::condition_variable became_idle;
    std::deque<Task> tasks;
    int threads = 0;
    int waiting = 0;  ///< Threads that wait for a task.
    int running = 0;  ///< Tasks removed from the queue and not finished.
    int blocked = 0;  ///< Running tasks that wait for something outside.
    int last_number = 0;

    /// The state of this process. After a fork, the child sees the parent's state, whose mutex may
    /// be locked forever and whose threads do not exist. The child leaves that state unchanged and
    /// replaces it.
    static State& current(State*& slot) {
        const std::atomic_ref<State*> shared(slot);
        State* found = shared.load(std::memory_order_acquire);
        while (found == nullptr || found->process != ::getpid()) {
            auto fresh = std::make_unique<State>();
            if (shared.compare_exchange_strong(found, fresh.get(), std::memory_order_acq_rel,
                                               std::memory_order_acquire)) {
                return *fresh.release();
            }
        }
        return *found;
    }

    /// Call with `mutex` held. Moves from `task` only on success.
    bool enqueue(Task& task) noexcept {
        try {
            tasks.emplace_back();
        } catch (const std::bad_alloc&) {
            return false;
        }
        tasks.back() = std::move(task);
        return true;
    }

    /// The pool of the calling worker thread, if any.
    static State*& of_this_thread() noexcept {
        thread_local State* state = nullptr;
        return state;
    }

    [[nodiscard]] bool has_free_core() const noexcept { return running - blocked < size; }

    /// Call with `mutex` held. Other workers may replace blocked ones, up to a limit.
    [[nodiscard]] bool may_grow() const noexcept {
        return threads < std::min(size + blocked, 2 * size);
    }

    void block() noexcept {
        const std::scoped_lock lock(mutex);
        ++blocked;
        if (tasks.empty()) return;
        if (waiting > 0) {
            work_arrived.notify_one();
        } else if (may_grow()) {
            start_thread();
        }
    }

    void unblock() noexcept {
        const std::scoped_lock lock(mutex);
        --blocked;
    }

    [[nodiscard]] bool idle() const noexcept { return tasks.empty() && running == 0; }

    /// Call with `mutex` held. Returns false if the system provides no thread.
    bool start_thread() noexcept {
        const sigset_t others = signals_of_others();
        sigset_t previous;
        // Block signals before the thread exists, so it cannot receive one in its first moments.
        ::pthread_sigmask(SIG_BLOCK, &others, &previous);
        bool started = true;
        try {
            std::thread(&State::work, this, last_number + 1).detach();
            ++last_number;
            ++threads;
        } catch (const std::exception&) {
            started = false;
        }
        ::pthread_sigmask(SIG_SETMASK, &previous, nullptr);
        return started;
    }

    void work(int number) {
        struct Alive {
            State& state;
            ~Alive() { state.thread_ended(); }
        } const alive{*this};
        of_this_thread() = this;
        ::pthread_setname_np(::pthread_self(), ("polymux-" + std::to_string(number)).c_str());
        for (;;) run_next();
    }

    void run_next() {
        struct Running {
            State& state;
            ~Running() { state.task_ended(); }
        };
        std::unique_lock lock(mutex);
        ++waiting;
        work_arrived.wait(lock, [this] { return !tasks.empty() && has_free_core(); });
        --waiting;
        ++running;
        const Running counted{*this};
        // Destroy the task's data before it counts as finished.
        const Task task = std::move(tasks.front());
        tasks.pop_front();
        lock.unlock();
        run(task);
    }

    void task_ended() {
        const std::scoped_lock lock(mutex);
        --running;
        if (idle()) became_idle.notify_all();
    }

    void thread_ended() {
        const std::scoped_lock lock(mutex);
        --threads;
        if (!tasks.empty()) start_thread();
    }
};

Pool::Pool() : state_(nullptr) {}

Pool& Pool::instance() {
    static Pool pool;
    return pool;
}

void Pool::submit(std::function<void()> task) {
    State& state = State::current(state_);
    {
        const std::scoped_lock lock(state.mutex);
        const bool all_claimed = state.tasks.size() >= static_cast<std::size_t>(state.waiting);
        if (all_claimed && state.may_grow()) state.start_thread();
        if (state.threads > 0 && state.enqueue(task)) {
            state.work_arrived.notify_one();
            return;
        }
    }
    // No thread or memory is available: run late rather than never.
    run(task);
}

Pool::Blocking::Blocking() noexcept {
    if (State* state = State::of_this_thread()) state->block();
}

Pool::Blocking::~Blocking() {
    if (State* state = State::of_this_thread()) state->unblock();
}

int Pool::size() const noexcept {
    static const int cores = available_cores();
    return cores;
}

int Pool::spare() {
    State& state = State::current(state_);
    const std::scoped_lock lock(state.mutex);
    const int taken = state.running - state.blocked + static_cast<int>(state.tasks.size());
    return std::max(0, state.size - taken);
}

bool Pool::wait_idle(int timeout_ms) {
    State& state = State::current(state_);
    std::unique_lock lock(state.mutex);
    return state.became_idle.wait_for(lock, std::chrono::milliseconds(std::max(timeout_ms, 0)),
                                      [&state] { return state.idle(); });
}

}  // namespace polymux
