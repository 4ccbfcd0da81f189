// Members of a Python chat stream.
#pragma once

#include <pybind11/critical_section.h>

#include "chat_feed.hpp"
#include "exchange_handle.hpp"
#include "interpreter.hpp"

namespace polymux::bindings {

/// Layout of both types. In builds without a GIL, hold the object's lock to access it. The lock is
/// released while waiting for the source and during long decoding; `busy` marks this.
struct Stream {
    PyObject_HEAD PyObject* source;  // An iterator, or an asynchronous one; null once closed.
    ExchangeHandle* exchange;        // The source, if it is a polymux exchange; otherwise null.
    ChatFeed* feed;                  // Owned: a Python object has no constructor.
    bool busy;                       // Waiting for the source.
};

inline Stream* as_stream(PyObject* object) noexcept {
    return reinterpret_cast<Stream*>(object);
}

/// Holds a stream's lock during its lifetime.
using Locked = py::scoped_critical_section;

/// Returns true with an exception set if the stream is already waiting for its source.
inline bool refuse_second_reader(const Stream& stream) {
    if (!stream.busy) return false;
    PyErr_SetString(
        PyExc_RuntimeError,
        "this chat stream is already being read. A stream can have only one reader at a time");
    return true;
}

/// The result for a reader at the end of the stream: null, with `stop` set if it succeeded.
inline PyObject* tell_end(const ChatFeed& feed, PyObject* stop) {
    if (!feed.finished()) {
        feed.raise_end();
    } else if (stop != nullptr) {
        PyErr_SetNone(stop);
    }
    return nullptr;
}

/// Returns `self`, for slots that return an iterator or an awaitable.
inline PyObject* itself(PyObject* self) {
    return Py_NewRef(self);
}

inline PyTypeObject* make_type(const char* name, PyType_Slot* slots, int size, unsigned flags) {
    PyType_Spec spec = {name, size, 0, flags, slots};
    return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

}  // namespace polymux::bindings
