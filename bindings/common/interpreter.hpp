// Enters and leaves the interpreter from threads that it did not start, safely at interpreter exit.
//
// Before CPython 3.14, a thread that requests the GIL after finalization began is ended by
// pthread_exit, which unwinds through C++ frames and may terminate the process. The functions here
// never request it after the interpreter is closed. A thread that loses that race sleeps forever,
// as in CPython 3.14.
#pragma once

#include <Python.h>

#include <functional>
#include <string>
#include <utility>

#include <pybind11/pybind11.h>

namespace polymux::bindings {

namespace py = pybind11;

/// Runs `body` with the GIL held, from any thread, even if it already holds the GIL. Returns false
/// without running it if the interpreter is closed to this thread. `body` must not throw.
bool with_gil(const std::function<void()>& body);

/// Runs `body` with the GIL released by the calling thread, which must hold it. `body` must not
/// throw and must not use Python.
void without_gil(const std::function<void()>& body);

/// Calls `callable`. Use it for every call that may run the caller's Python code on a thread that
/// could outlive the interpreter: no C++ frame below this one is ever unwound. GIL held.
py::object invoke(py::handle callable, const py::tuple& arguments = py::tuple());

/// Takes the new reference that a C API call returned. Raises the call's exception if it is null.
inline py::object owned(PyObject* object) {
    if (object == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(object);
}

/// Refuses every later entry except from the calling thread. Called once, at interpreter exit.
void close_interpreter() noexcept;

/// Every module calls it at initialization. After finalization begins, only the thread that ran the
/// exit handlers may enter.
void watch_interpreter_exit();

/// For every class: `type` is sufficient, because static properties are not used.
inline py::metaclass plain_metaclass() {
    return py::metaclass(py::type::of(py::type::of(py::none())));
}

/// `__reduce__` of classes that cannot be pickled. Without it, Python would copy an uninitialized
/// object.
inline void refuse_pickling(const py::object& self) {
    throw py::type_error(std::string(Py_TYPE(self.ptr())->tp_name) +
                         " cannot be pickled or copied");
}

/// Makes `T.__new__(T)` raise TypeError for the module's classes, because an uninitialized object
/// is empty. Call it after all classes are defined.
void forbid_uninitialized(py::handle module);

/// The C++ object of an instance of `py::class_<T>` without subclasses. Uses no lookup: during
/// garbage collection all threads are stopped, and one may hold the lock of pybind11's tables.
template <typename T>
T& held(PyObject* self) {
    auto* const instance = reinterpret_cast<py::detail::instance*>(self);
    return *static_cast<T*>(instance->get_value_and_holder().value_ptr());
}

/// For classes with Python objects that may refer back to them: makes these visible to the garbage
/// collector. `T` has `int traverse(visitproc, void*)` and `void clear()`.
template <typename T>
void collect_cycles(PyHeapTypeObject* heap_type) {
    PyTypeObject& type = heap_type->ht_type;
    type.tp_flags |= Py_TPFLAGS_HAVE_GC;
    type.tp_traverse = [](PyObject* self, visitproc visit, void* arg) {
        Py_VISIT(Py_TYPE(self));
        return py::detail::is_holder_constructed(self) ? held<T>(self).traverse(visit, arg) : 0;
    };
    type.tp_clear = [](PyObject* self) {
        if (py::detail::is_holder_constructed(self)) held<T>(self).clear();
        return 0;
    };
}

/// One owned reference to a Python object that may be dropped on any thread. When the interpreter
/// is closed, the reference is leaked, because it must not be used any more.
class Reference {
public:
    Reference() = default;
    explicit Reference(py::object object) noexcept : pointer_(object.release().ptr()) {}
    Reference(Reference&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
    Reference& operator=(Reference&& other) noexcept {
        std::swap(pointer_, other.pointer_);
        return *this;
    }
    Reference(const Reference&) = delete;
    Reference& operator=(const Reference&) = delete;
    ~Reference() { reset(); }

    void reset() noexcept;
    [[nodiscard]] explicit operator bool() const noexcept { return pointer_ != nullptr; }

    /// Borrowed; using it needs the GIL.
    [[nodiscard]] py::handle get() const noexcept { return pointer_; }

private:
    PyObject* pointer_ = nullptr;
};

}  // namespace polymux::bindings
