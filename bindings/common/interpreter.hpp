// Entering and leaving the interpreter from threads it did not start, safe at interpreter exit.
//
// Before CPython 3.14 a thread that asks for the GIL after finalization began is ended by
// pthread_exit, which unwinds through C++ frames and may terminate the process. The functions here
// never ask once the interpreter is closed, and if a thread loses that race it sleeps for ever
// instead, as CPython 3.14 does itself.
#pragma once

#include <Python.h>

#include <functional>
#include <string>
#include <utility>

#include <pybind11/pybind11.h>

namespace polymux::bindings {

namespace py = pybind11;

/// Runs `body` with the GIL held, from any thread, whether it holds the GIL already or not. False,
/// without running it, once the interpreter is closed to this thread. `body` must not throw.
bool with_gil(const std::function<void()>& body);

/// Runs `body` with the GIL released by the calling thread, which must hold it. `body` must not
/// throw and must not touch Python.
void without_gil(const std::function<void()>& body);

/// Calls `callable`. Whatever may run the caller's Python code on a thread that could outlive the
/// interpreter goes through here: below this frame nothing of ours is ever unwound. GIL held.
py::object invoke(py::handle callable, const py::tuple& arguments = py::tuple());

/// The new reference that a call of the C API gave; raises what the call raised where it gave none.
inline py::object owned(PyObject* object) {
    if (object == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(object);
}

/// Refuses every later entry but those of the calling thread. Called once, at interpreter exit.
void close_interpreter() noexcept;

/// Every module calls it when it is made: once finalization began, only the thread that ran the
/// exit handlers may enter.
void watch_interpreter_exit();

/// For every class: without static properties, none of which is used, `type` will do.
inline py::metaclass plain_metaclass() {
    return py::metaclass(py::type::of(py::type::of(py::none())));
}

/// `__reduce__` of classes that hold what cannot be written down. Without it Python would copy an
/// object that was never made.
inline void refuse_pickling(const py::object& self) {
    throw py::type_error(std::string(Py_TYPE(self.ptr())->tp_name) +
                         " cannot be pickled or copied");
}

/// Makes `T.__new__(T)` a TypeError for the module's classes: an object that was never initialised
/// has nothing in it. Called when all of them are there.
void forbid_uninitialized(py::handle module);

/// The C++ object of one of `py::class_<T>`, which nothing is derived from. Looks nothing up: while
/// garbage is collected all threads stand still, and one may have locked pybind11's tables.
template <typename T>
T& held(PyObject* self) {
    auto* const instance = reinterpret_cast<py::detail::instance*>(self);
    return *static_cast<T*>(instance->get_value_and_holder().value_ptr());
}

/// For classes that hold Python objects which may refer back to them: lets the collector see these.
/// `T` has `int traverse(visitproc, void*)` and `void clear()`.
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

/// One owned reference to a Python object that may be dropped on any thread.
/// When the interpreter is closed the reference is leaked: nobody may touch it any more.
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

    /// Borrowed; the GIL is needed to do anything with it.
    [[nodiscard]] py::handle get() const noexcept { return pointer_; }

private:
    PyObject* pointer_ = nullptr;
};

}  // namespace polymux::bindings
