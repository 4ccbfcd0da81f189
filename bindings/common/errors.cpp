#include "errors.hpp"

#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include <pybind11/stl.h>

namespace polymux::bindings {
namespace {

Error callback_error() {
    return {.code = ErrorCode::callback_failed, .message = "a Python callback failed"};
}

}  // namespace

py::str to_text(std::string_view text) {
    PyObject* const decoded =
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
    if (decoded == nullptr) {
        throw py::error_already_set();
    }
    return py::reinterpret_steal<py::str>(decoded);
}

py::object make_exception(const Error& error) {
    return py::module_::import("polymux._native.errors")
        .attr("from_native")(to_text(to_string(error.code)), to_text(error.message),
                             to_text(error.input_name), error.position_s, error.ffmpeg_code,
                             to_text(error.ffmpeg_text), error.os_errno, to_text(error.stage));
}

void raise_object(py::handle exception, py::handle traceback) {
    PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr()))),
                  Py_NewRef(exception.ptr()), Py_XNewRef(traceback.ptr()));
    throw py::error_already_set();
}

void raise(const Error& error) {
    raise_object(make_exception(error), {});
}

void translate_exceptions() {
#ifndef __GLIBCXX__
    py::register_local_exception_translator(&py::detail::translate_exception);
#endif
}

Result<void> PythonCalls::call(const std::function<void()>& body) {
    if (failed()) {
        return callback_error();
    }
    inside_ = true;
    const bool entered = with_gil([this, &body] {
        try {
            body();
        } catch (const py::error_already_set& raised) {
            keep(raised.value(), raised.trace());
        } catch (const py::builtin_exception& raised) {
            raised.set_error();
            const py::error_already_set fetched;
            keep(fetched.value(), fetched.trace());
        } catch (const std::bad_alloc&) {
            PyErr_NoMemory();
            const py::error_already_set fetched;
            keep(fetched.value(), fetched.trace());
        }
    });
    inside_ = false;
    if (!entered || failed()) {
        return callback_error();
    }
    return {};
}

void PythonCalls::raise() const {
    py::object exception;
    py::object traceback;
    {
        const std::scoped_lock lock(lock_);
        exception = py::reinterpret_borrow<py::object>(exception_.get());
        traceback = py::reinterpret_borrow<py::object>(traceback_.get());
    }
    if (!exception)
        throw std::runtime_error(
            "the exception of a Python callback was cleared by another thread");
    raise_object(exception, traceback);
}

void PythonCalls::keep(py::object exception, py::object traceback) {
    const std::scoped_lock lock(lock_);
    if (!failed()) {
        exception_ = Reference(std::move(exception));
        traceback_ = Reference(std::move(traceback));
        failed_ = true;
    }
}

int PythonCalls::traverse(visitproc visit, void* arg) const {
    if (failed()) {
        Py_VISIT(exception_.get().ptr());
        Py_VISIT(traceback_.get().ptr());
    }
    return 0;
}

void PythonCalls::clear() noexcept {
    // Dropped after the lock is released, because destruction may call back here.
    Reference exception;
    Reference traceback;
    const std::scoped_lock lock(lock_);
    failed_ = false;
    exception = std::move(exception_);
    traceback = std::move(traceback_);
}

}  // namespace polymux::bindings
