// From the core's errors to Python exceptions, and Python exceptions carried through the core.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "free_threads.hpp"
#include "interpreter.hpp"
#include "polymux/result.hpp"

namespace polymux::bindings {

/// A Python str; bytes that are not UTF-8 appear as "\xff", so that it can always be printed.
py::str to_text(std::string_view text);

/// The exception that `polymux.errors` makes of `error`. GIL held.
py::object make_exception(const Error& error);

/// Raises it. GIL held.
[[noreturn]] void raise(const Error& error);

/// Raises an exception object as it is, with `traceback` as its only history.
[[noreturn]] void raise_object(py::handle exception, py::handle traceback);

/// The value, or the error raised. GIL held.
template <typename T>
T value_or_raise(Result<T> result) {
    if (!result) {
        raise(result.error());
    }
    return std::move(*result);
}

/// Calls from a working thread into Python objects of the caller. The first exception is kept, so
/// that whoever waits for the work gets the same object with the same traceback. One working
/// thread calls `call`; the waiting threads read.
class PythonCalls {
public:
    PythonCalls() = default;
    PythonCalls(const PythonCalls&) = delete;
    PythonCalls& operator=(const PythonCalls&) = delete;

    /// Runs `body` with the GIL. When it raises, or when a call before it did: `callback_failed`.
    Result<void> call(const std::function<void()>& body);

    /// True while the working thread is inside Python code, where cancelling cannot reach it.
    [[nodiscard]] bool inside() const noexcept { return inside_.load(); }

    [[nodiscard]] bool failed() const noexcept { return failed_.load(); }

    /// Raises the kept exception. Only after `failed()`; GIL held.
    [[noreturn]] void raise() const;

    /// Keeps `exception` as if a call had raised it, unless there is one already. GIL held.
    void keep(py::object exception, py::object traceback);

    /// For the garbage collector: the exception's frames usually refer back to the waiting call.
    int traverse(visitproc visit, void* argument) const;
    void clear() noexcept;

private:
    std::atomic<bool> inside_{false};
    std::atomic<bool> failed_{false};
    mutable GilLock lock_;  // For the two that follow: any number of threads may wait.
    Reference exception_;
    Reference traceback_;
};

}  // namespace polymux::bindings
