// Runs the core's work on another thread. Python threads that await it stay interruptible.
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

/// Held by a Python thread while it is in the module and may run Python code there. At interpreter
/// exit, new entries raise RuntimeError, and current ones may still leave: if CPython ended such a
/// thread, it would unwind frames that own Python objects.
class Entry {
public:
    Entry();
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
};

/// One piece of work. Python threads create and await it with the GIL held; a thread without the
/// GIL runs it. Thread-safe, but belongs to the process that started it: see `foreign`.
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

    /// Starts the work, inside an `Entry`. `on_done`, which may be empty, is called once, after
    /// `finished()` has become true.
    void start(Place place, py::object on_done = {});

    /// Requests the end of the work. Queued work ends at once.
    void cancel();

    /// Waits until the work has finished, with the GIL released. At least every 50 ms, runs signal
    /// handlers and then `between` with the GIL. If either raises, cancels the work, waits for it
    /// and raises the exception.
    void await(const std::function<void()>& between = {});

    /// The same with a Python function in place of `between`, which ends the work by raising; None
    /// for no function.
    void await_checked(const py::object& check);

    /// Waits at most `limit`, with the GIL released. Returns true if finished.
    bool wait_for(std::chrono::milliseconds limit);

    [[nodiscard]] bool finished() const noexcept { return phase_.load() == Phase::finished; }

    /// True in a process forked after the start. The working thread does not exist there and a lock
    /// may be held without an owner, so only the destructor, which leaks it, may be called.
    [[nodiscard]] bool foreign() const noexcept;

    [[nodiscard]] PythonCalls& calls() const noexcept { return *calls_; }
    [[nodiscard]] const std::shared_ptr<PythonCalls>& shared_calls() const noexcept {
        return calls_;
    }
    [[nodiscard]] const CancelToken& token() const noexcept { return token_; }

protected:
    /// The work, on the working thread; must destroy its sources and sinks.
    virtual void run() noexcept = 0;

    /// Called instead of `run` if canceled before the start. On the canceling thread.
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

/// A job whose work returns a `Result<T>`.
template <typename T>
class ResultJob : public Job {
public:
    /// Set it before `start`. Everything that the function owns is destroyed before the job counts
    /// as finished.
    std::function<Result<T>()> work;

    /// Returns the value or raises the failure, the same on each call. Call only once finished; GIL
    /// held.
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
        result_ = Error{.code = ErrorCode::cancelled,
                        .message = "the operation was canceled before it started"};
        work = nullptr;
    }

private:
    std::optional<Result<T>> result_;
};

/// At interpreter exit, cancels every job and waits for them, then closes the interpreter to the
/// working threads.
void register_exit_handler();

}  // namespace polymux::bindings
