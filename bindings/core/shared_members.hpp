// Access to members of dicts and lists that other threads may change.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

/// Keeps an object alive while the caller's code may run, or while another thread may drop it.
class Held {
public:
    Held() = default;
    explicit Held(PyObject* object) : object_(Py_NewRef(object)) {}
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() { Py_XDECREF(object_); }

    void steal(PyObject* object) {
        Py_XDECREF(object_);
        object_ = object;
    }
    PyObject* get() const { return object_; }

private:
    PyObject* object_ = nullptr;
};

/// The next member of a dict. Without a GIL, `name_held` and `value_held` own the references;
/// otherwise they are borrowed.
inline bool next_member(PyObject* dict, Py_ssize_t& position, PyObject*& name, PyObject*& value,
                        [[maybe_unused]] Held& name_held, [[maybe_unused]] Held& value_held) {
#ifdef Py_GIL_DISABLED
    bool found = false;
    Py_BEGIN_CRITICAL_SECTION(dict);
    found = PyDict_Next(dict, &position, &name, &value) != 0;
    if (found) {
        Py_INCREF(name);
        Py_INCREF(value);
    }
    Py_END_CRITICAL_SECTION();
    if (found) {
        name_held.steal(name);
        value_held.steal(value);
    }
    return found;
#else
    return PyDict_Next(dict, &position, &name, &value) != 0;
#endif
}

/// The item of a list or tuple, owned by the caller; null past the end.
inline PyObject* item_at(PyObject* sequence, Py_ssize_t index) {
    if (PyTuple_Check(sequence)) {
        return index < PyTuple_GET_SIZE(sequence) ? Py_NewRef(PyTuple_GET_ITEM(sequence, index))
                                                  : nullptr;
    }
#ifdef Py_GIL_DISABLED
    PyObject* const item = PyList_GetItemRef(sequence, index);
    if (item == nullptr) PyErr_Clear();
    return item;
#else
    return index < PyList_GET_SIZE(sequence) ? Py_NewRef(PyList_GET_ITEM(sequence, index))
                                             : nullptr;
#endif
}

}  // namespace polymux::bindings
