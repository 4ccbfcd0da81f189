#include "interpreter.hpp"

#include <string_view>

#include <unistd.h>

#include <atomic>
#include <thread>

namespace polymux::bindings {
namespace {

std::atomic<bool> closed{false};
/// The thread that ends the interpreter, known once its exit handlers run.
std::atomic<std::thread::id> closing_thread{};

/// True from the start of finalization to the end of the process. The interpreter then has no
/// thread states for other threads: requesting one would read invalid memory.
bool is_finalizing() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing() != 0;
#else
    return _Py_IsFinalizing() != 0;
#endif
}

/// If the module is loaded by an exit handler, its own never runs. The main thread ends the
/// interpreter then.
bool is_closing_thread() noexcept {
    const std::thread::id known = closing_thread.load();
    return known == std::thread::id() ? ::gettid() == ::getpid()
                                      : known == std::this_thread::get_id();
}

bool closed_to_this_thread() noexcept {
    return (closed.load() || is_finalizing()) && !is_closing_thread();
}

[[noreturn]] void sleep_for_ever() noexcept {
    for (;;) {
        pause();
    }
}

/// On the stack of every call that may wait for the GIL. It is left only by `disarm`, or when
/// CPython ends the thread with pthread_exit: that unwinding stops here.
class ExitBarrier {
public:
    ExitBarrier() = default;
    ExitBarrier(const ExitBarrier&) = delete;
    ExitBarrier& operator=(const ExitBarrier&) = delete;
    ~ExitBarrier() {
        if (armed_) {
            sleep_for_ever();
        }
    }
    void disarm() noexcept { armed_ = false; }

private:
    bool armed_ = true;
};

}  // namespace

bool with_gil(const std::function<void()>& body) {
    if (closed_to_this_thread()) {
        return false;
    }
    ExitBarrier barrier;
    const PyGILState_STATE state = PyGILState_Ensure();
    body();
    PyGILState_Release(state);
    barrier.disarm();
    return true;
}

void without_gil(const std::function<void()>& body) {
    PyThreadState* const thread_state = PyEval_SaveThread();
    body();
    if (closed_to_this_thread()) {
        sleep_for_ever();
    }
    ExitBarrier barrier;
    PyEval_RestoreThread(thread_state);
    barrier.disarm();
}

py::object invoke(py::handle callable, const py::tuple& arguments) {
    PyObject* result = nullptr;
    {
        ExitBarrier barrier;
        result = PyObject_Call(callable.ptr(), arguments.ptr(), nullptr);
        barrier.disarm();
    }
    if (result == nullptr) {
        throw py::error_already_set();
    }
    return py::reinterpret_steal<py::object>(result);
}

void close_interpreter() noexcept {
    closing_thread.store(std::this_thread::get_id());
    closed.store(true);
}

void watch_interpreter_exit() {
    py::module_::import("atexit").attr("register")(
        py::cpp_function([] { closing_thread.store(std::this_thread::get_id()); }));
}

void Reference::reset() noexcept {
    PyObject* const dropped = std::exchange(pointer_, nullptr);
    if (dropped != nullptr) {
        with_gil([dropped] { Py_DECREF(dropped); });
    }
}

namespace {

/// Calls the base's `tp_new`. Python rejects `Base.__new__(T)` if the two types have different
/// functions here, so it raises TypeError instead of creating an uninitialized object.
PyObject* new_by_call(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
    return type->tp_base->tp_new(type, arguments, keywords);
}

}  // namespace

void forbid_uninitialized(py::handle module) {
    for (const auto& [name, value] : py::dict(module.attr("__dict__"))) {
        if (!PyType_Check(value.ptr())) continue;
        auto* const type = reinterpret_cast<PyTypeObject*>(value.ptr());
        const bool ours = type->tp_base != nullptr &&
                          std::string_view(type->tp_base->tp_name).ends_with("pybind11_object");
        if (ours) type->tp_new = &new_by_call;
    }
}

}  // namespace polymux::bindings
