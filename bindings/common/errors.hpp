// Converts the core's errors to Python exceptions, and carries Python exceptions through the core.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "free_threads.hpp"
#include "interpreter.hpp"
#include "polymux/result.hpp"

namespace polymux::bindings {

/// A Python str. Invalid UTF-8 appears as "\xff", so the text can always be printed.
py::str to_text(std::string_view text);

/// The exception that `polymux.errors` makes for `error`. GIL held.
py::object make_exception(const Error& error);

/// Raises that exception. GIL held.
[[noreturn]] void raise(const Error& error);

/// Raises an exception object unchanged, with `traceback` as its only history.
[[noreturn]] void raise_object(py::handle exception, py::handle traceback);

/// Every module calls it at initialization, to translate the exceptions that it throws.
/// pybind11 lets the first module do that for all. Only with GCC's C++ library does that module
/// recognize the exceptions of another one.
void translate_exceptions();

/// Returns the value, or raises the error. GIL held.
template <typename T>
T value_or_raise(Result<T> result) {
    if (!result) {
        raise(result.error());
    }
    return std::move(*result);
}

/// Calls from a working thread into Python objects of the caller. Keeps the first exception, so the
/// threads that wait for the work can raise the same object with the same traceback. One working
/// thread calls `call`; the waiting threads read.
class PythonCalls {
public:
    PythonCalls() = default;
    PythonCalls(const PythonCalls&) = delete;
    PythonCalls& operator=(const PythonCalls&) = delete;

    /// Runs `body` with the GIL. Returns `callback_failed` if it raises, or if an earlier call
    /// raised.
    Result<void> call(const std::function<void()>& body);

    /// True while the working thread runs Python code, which cancellation cannot interrupt.
    [[nodiscard]] bool inside() const noexcept { return inside_.load(); }

    [[nodiscard]] bool failed() const noexcept { return failed_.load(); }

    /// Raises the kept exception. Call only after `failed()`; GIL held.
    [[noreturn]] void raise() const;

    /// Keeps `exception` as if a call had raised it, unless one is already kept. GIL held.
    void keep(py::object exception, py::object traceback);

    /// For the garbage collector: the exception's frames usually refer back to the waiting call.
    int traverse(visitproc visit, void* argument) const;
    void clear() noexcept;

private:
    std::atomic<bool> inside_{false};
    std::atomic<bool> failed_{false};
    mutable GilLock lock_;  // Guards the following two; any number of threads may wait.
    Reference exception_;
    Reference traceback_;
};

}  // namespace polymux::bindings
