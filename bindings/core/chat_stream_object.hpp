// What a chat stream of Python is made of.
#pragma once

#include <pybind11/critical_section.h>

#include "chat_feed.hpp"
#include "exchange_handle.hpp"
#include "interpreter.hpp"

namespace polymux::bindings {

/// Both types have this layout. Where threads run at once, whoever looks at one holds the object's
/// lock, which is open while the source is waited for and while much is decoded: `busy` tells.
struct Stream {
    PyObject_HEAD PyObject* source;  // An iterator, or an asynchronous one; null once it is closed.
    ExchangeHandle* exchange;        // The source, where it is an exchange of ours; else null.
    ChatFeed* feed;                  // Owned: a Python object has no constructor.
    bool busy;                       // Waiting for the source.
};

inline Stream* as_stream(PyObject* object) noexcept {
    return reinterpret_cast<Stream*>(object);
}

/// Holds a stream's lock for as long as it lives.
using Locked = py::scoped_critical_section;

/// True, with an exception set, while the stream waits for its source already.
inline bool refuse_second_reader(const Stream& stream) {
    if (!stream.busy) return false;
    PyErr_SetString(PyExc_RuntimeError,
                    "this chat stream is being read already: a stream has one reader at a time");
    return true;
}

/// What the end of the stream is for whoever asks for a chunk: null, with `stop` set where all went
/// well.
inline PyObject* tell_end(const ChatFeed& feed, PyObject* stop) {
    if (!feed.finished()) {
        feed.raise_end();
    } else if (stop != nullptr) {
        PyErr_SetNone(stop);
    }
    return nullptr;
}

/// `itself` for slots that want an iterator or an awaitable of what is one.
inline PyObject* itself(PyObject* self) {
    return Py_NewRef(self);
}

inline PyTypeObject* make_type(const char* name, PyType_Slot* slots, int size, unsigned flags) {
    PyType_Spec spec = {name, size, 0, flags, slots};
    return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

}  // namespace polymux::bindings
