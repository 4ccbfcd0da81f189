// Work of the core on another thread, awaited by Python threads that stay interruptible.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "errors.hpp"
#include "polymux/cancel.hpp"

namespace polymux::bindings {

/// Held by a Python thread while it is inside the module and may run Python code there. At
/// interpreter exit no new one begins (RuntimeError), and those that are there may still leave:
/// a thread that CPython ended here would unwind frames that own Python objects.
class Entry {
public:
    Entry();
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
};

/// One piece of work. Made and awaited by Python threads with the GIL held, run by a thread without
/// it. Thread-safe, but belongs to the process that started it: see `foreign`.
class Job : public std::enable_shared_from_this<Job> {
public:
    enum class Place : std::uint8_t {
        pool,        ///< The process-wide pool, in order of submission.
        own_thread,  ///< For short work that must not queue behind conversions.
    };

    Job();
    virtual ~Job() = default;
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    /// Starts the work, inside an `Entry`. `on_done`, which may be empty, is called once, when
    /// `finished()` is true already.
    void start(Place place, py::object on_done = {});

    /// Asks the work to end. What still waits for a worker ends at once.
    void cancel();

    /// Waits until the work has finished, the GIL released. Every 50 ms at most, signal handlers
    /// and then `between` run with the GIL; when either raises, the work is cancelled, awaited and
    /// the exception passed on.
    void await(const std::function<void()>& between = {});

    /// The same with a Python function between, which ends the work by raising; None for nothing.
    void await_checked(const py::object& check);

    /// Waits at most `limit`, the GIL released. True when finished.
    bool wait_for(std::chrono::milliseconds limit);

    [[nodiscard]] bool finished() const noexcept { return phase_.load() == Phase::finished; }

    /// True in a process forked after the start: the working thread does not exist there and a
    /// lock may be held by nobody, so nothing but the destructor's leak may follow.
    [[nodiscard]] bool foreign() const noexcept;

    [[nodiscard]] PythonCalls& calls() const noexcept { return *calls_; }
    [[nodiscard]] const std::shared_ptr<PythonCalls>& shared_calls() const noexcept {
        return calls_;
    }
    [[nodiscard]] const CancelToken& token() const noexcept { return token_; }

protected:
    /// The work, on the working thread; must leave no source or sink behind.
    virtual void run() noexcept = 0;

    /// Instead of `run`, when cancelled before it began. On the cancelling thread.
    virtual void abandon() noexcept = 0;

private:
    enum class Phase : std::uint8_t { queued, running, finished };

    void execute();
    void finish();
    void end_after_cancel();

    const pid_t process_;
    const std::shared_ptr<PythonCalls> calls_ = std::make_shared<PythonCalls>();
    CancelToken token_;
    Reference on_done_;
    std::atomic<Phase> phase_{Phase::queued};
    std::mutex mutex_;
    std::condition_variable changed_;
};

/// A job whose work gives a `Result<T>`.
template <typename T>
class ResultJob : public Job {
public:
    /// Set before `start`. What the function owns is destroyed before the job counts as finished.
    std::function<Result<T>()> work;

    /// Only once finished, GIL held: the value, or the failure raised, each time the same.
    const T& get() {
        if (calls().failed()) {
            calls().raise();
        }
        if (!*result_) {
            const py::object exception = make_exception(result_->error());
            calls().keep(exception, {});
            calls().raise();
        }
        return **result_;
    }

protected:
    void run() noexcept override {
        try {
            result_ = work();
        } catch (const std::bad_alloc&) {
            result_ = Error{.code = ErrorCode::out_of_memory, .message = "not enough memory"};
        } catch (const std::exception& unexpected) {
            result_ = Error{.code = ErrorCode::internal, .message = unexpected.what()};
        }
        work = nullptr;
    }

    void abandon() noexcept override {
        result_ = Error{.code = ErrorCode::cancelled, .message = "cancelled before it began"};
        work = nullptr;
    }

private:
    std::optional<Result<T>> result_;
};

/// Cancels every job at interpreter exit and waits for them, then closes the interpreter to the
/// working threads.
void register_exit_handler();

}  // namespace polymux::bindings
