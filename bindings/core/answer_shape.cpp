#include "answer_shape.hpp"

#include "shared_members.hpp"

namespace polymux::bindings {

namespace {

enum KindBit : long {  // As in `polymux.client.responses._base`.
    text = 1,
    integer = 2,
    floating = 4,
    object = 8,
    array = 16,
};

long kind_bit(PyObject* value) {
    if (PyUnicode_CheckExact(value)) return text;
    if (PyLong_CheckExact(value)) return integer;
    if (PyFloat_CheckExact(value)) return floating;
    if (PyDict_CheckExact(value)) return object;
    if (PyList_CheckExact(value)) return array;
    return 0;
}

bool fits(PyObject* value, PyObject* shape);

/// Checks an array of responses within a response.
bool all_fit(PyObject* values, PyObject* shape, bool may_be_empty) {
    if (!PyList_CheckExact(values)) return false;
    Py_ssize_t count = 0;
    for (;; ++count) {
        Held item;
        item.steal(item_at(values, count));
        if (item.get() == nullptr) break;
        if (!fits(item.get(), shape)) return false;
    }
    return count != 0 || may_be_empty;
}

/// `part`: (shape, whether it is an array, whether it may be empty).
bool part_fits(PyObject* value, PyObject* part) {
    PyObject* const shape = PyTuple_GetItem(part, 0);
    if (PyTuple_GetItem(part, 1) != Py_True) return fits(value, shape);
    return all_fit(value, shape, PyTuple_GetItem(part, 2) == Py_True);
}

bool member_fits(PyObject* name, PyObject* value, PyObject* kinds, PyObject* parts) {
    if (!PyUnicode_CheckExact(name)) return false;
    if (value == Py_None) return true;
    if (PyObject* const wanted = PyDict_GetItemWithError(kinds, name)) {
        return (PyLong_AsLong(wanted) & kind_bit(value)) != 0;
    }
    PyObject* const part = PyDict_GetItemWithError(parts, name);
    return part == nullptr || part_fits(value, part);
}

/// `shape`: (name to bits of its kinds, required names, name to part); immutable. Nothing here runs
/// Python code.
bool fits(PyObject* value, PyObject* shape) {
    if (!PyDict_CheckExact(value)) return false;
    PyObject* const kinds = PyTuple_GetItem(shape, 0);
    PyObject* const required = PyTuple_GetItem(shape, 1);
    PyObject* const parts = PyTuple_GetItem(shape, 2);
    Py_ssize_t at = 0;
    PyObject* name = nullptr;
    PyObject* member = nullptr;
    Held name_held;
    Held member_held;
    while (next_member(value, at, name, member, name_held, member_held)) {
        if (!member_fits(name, member, kinds, parts)) return false;
    }
    for (Py_ssize_t index = 0; index < PyTuple_Size(required); ++index) {
        PyObject* const found = PyDict_GetItemWithError(value, PyTuple_GetItem(required, index));
        if (found == nullptr || found == Py_None) return false;
    }
    return true;
}

}  // namespace

void register_answer_shape(py::module_& module) {
    module.def(
        "fits",
        [](const py::object& value, const py::tuple& shape) {
            return fits(value.ptr(), shape.ptr());
        },
        py::arg("value"), py::arg("shape"),
        "Return True if a parsed response certainly matches the shape. False means that the "
        "response needs a full check.");
}

}  // namespace polymux::bindings
