#include "chat_stream.hpp"

#include <memory>
#include <new>

#include "awaited_chunk.hpp"
#include "chat_chunk.hpp"
#include "chat_stream_object.hpp"
#include "errors.hpp"

namespace polymux::bindings {

namespace {

/// `Stream(source, max_event_bytes, templates)`; `source` is already an iterator.
PyObject* make_stream(PyTypeObject* type, PyObject* arguments,
                      PyObject* (*iterator_of)(PyObject*)) {
    PyObject* source = nullptr;
    Py_ssize_t max_event_bytes = 0;
    int templates = 1;
    if (PyArg_ParseTuple(arguments, "On|p", &source, &max_event_bytes, &templates) == 0)
        return nullptr;
    const bool exchange = py::isinstance<ExchangeHandle>(source);
    const py::object iterator =
        py::reinterpret_steal<py::object>(exchange ? Py_NewRef(source) : iterator_of(source));
    if (!iterator) return nullptr;
    PyObject* const self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    try {
        const stream::ChatDecoderOptions options{
            .max_event_bytes = static_cast<std::size_t>(max_event_bytes),
            .templates = templates != 0};
        auto feed = exchange ? std::make_unique<ChatFeed>() : std::make_unique<ChatFeed>(options);
        as_stream(self)->feed = feed.release();
    } catch (const std::bad_alloc&) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    as_stream(self)->source = Py_NewRef(iterator.ptr());
    as_stream(self)->exchange = exchange ? &py::cast<ExchangeHandle&>(iterator) : nullptr;
    return self;
}

PyObject* stream_new(PyTypeObject* type, PyObject* arguments, PyObject*) {
    return make_stream(type, arguments, &PyObject_GetIter);
}

PyObject* async_stream_new(PyTypeObject* type, PyObject* arguments, PyObject*) {
    return make_stream(type, arguments, &PyObject_GetAIter);
}

int stream_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_stream(self)->source);
    return 0;
}

int stream_clear(PyObject* self) {
    as_stream(self)->exchange = nullptr;
    Py_CLEAR(as_stream(self)->source);
    return 0;
}

void stream_free(PyObject* self) {
    PyObject_GC_UnTrack(self);
    stream_clear(self);
    const std::unique_ptr<ChatFeed> feed(as_stream(self)->feed);
    PyTypeObject* const type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/// Takes what the exchange has decoded meanwhile. If that is nothing, runs it until there is
/// something.
bool pull(Stream& stream, ExchangeHandle& exchange) {
    stream.busy = true;
    try {
        exchange.wait_for_news();
        stream.feed->take(exchange);
    } catch (py::error_already_set& raised) {
        raised.restore();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    stream.busy = false;
    return PyErr_Occurred() == nullptr;
}

/// Takes one more piece from the source, or its end. Returns false with an exception set.
bool pull(Stream& stream) {
    if (stream.source == nullptr) {
        stream.feed->finish();
        return PyErr_Occurred() == nullptr;
    }
    const py::object source = py::reinterpret_borrow<py::object>(stream.source);
    if (stream.exchange != nullptr) return pull(stream, *stream.exchange);
    stream.busy = true;
    const py::object piece = py::reinterpret_steal<py::object>(PyIter_Next(source.ptr()));
    bool going_on = true;
    if (piece) {
        going_on = stream.feed->feed(piece.ptr());
    } else if (PyErr_Occurred() == nullptr) {
        stream.feed->finish();
        going_on = PyErr_Occurred() == nullptr;
    } else {
        going_on = false;
    }
    stream.busy = false;
    return going_on;
}

PyObject* next_chunk(Stream& stream) {
    if (refuse_second_reader(stream)) return nullptr;
    for (;;) {
        PyObject* const chunk = stream.feed->next();
        if (chunk != nullptr || PyErr_Occurred() != nullptr) return chunk;
        if (stream.feed->at_end()) return tell_end(*stream.feed, nullptr);
        if (!pull(stream)) return nullptr;
    }
}

PyObject* stream_next(PyObject* self) {
    const Locked lock(self);
    return next_chunk(*as_stream(self));
}

// Methods only of the asynchronous type, for the coroutine that waits in
// `polymux.client.chat_stream`.

PyObject* async_pop(PyObject* self, PyObject*) {
    const Locked lock(self);
    ChatFeed& feed = *as_stream(self)->feed;
    PyObject* const chunk = feed.next();
    if (chunk != nullptr || PyErr_Occurred() != nullptr) return chunk;
    return feed.at_end() ? tell_end(feed, PyExc_StopAsyncIteration) : Py_NewRef(Py_None);
}

PyObject* async_feed(PyObject* self, PyObject* bytes) {
    const Locked lock(self);
    if (!as_stream(self)->feed->feed(bytes)) return nullptr;
    Py_RETURN_NONE;
}

PyObject* async_finish(PyObject* self, PyObject*) {
    const Locked lock(self);
    as_stream(self)->feed->finish();
    if (PyErr_Occurred() != nullptr) return nullptr;
    Py_RETURN_NONE;
}

PyObject* async_hold(PyObject* self, PyObject* hold) {
    const Locked lock(self);
    Stream& stream = *as_stream(self);
    if (hold == Py_True && refuse_second_reader(stream)) return nullptr;
    stream.busy = hold == Py_True;
    Py_RETURN_NONE;
}

/// Drops the source and everything that it would still deliver.
PyObject* stream_detach(PyObject* self, PyObject*) {
    const Locked lock(self);
    PyObject* const source = as_stream(self)->source;
    as_stream(self)->source = nullptr;
    as_stream(self)->exchange = nullptr;
    return source == nullptr ? Py_NewRef(Py_None) : source;
}

PyObject* stream_text(PyObject* self, void*) {
    const Locked lock(self);
    return as_stream(self)->feed->text();
}
PyObject* stream_finish_reason(PyObject* self, void*) {
    const Locked lock(self);
    return as_stream(self)->feed->finish_reason();
}
PyObject* stream_usage(PyObject* self, void*) {
    const Locked lock(self);
    return as_stream(self)->feed->usage();
}
PyObject* stream_finished(PyObject* self, void*) {
    const Locked lock(self);
    const Stream& stream = *as_stream(self);
    // Busy: data read meanwhile is not delivered yet.
    return PyBool_FromLong(!stream.busy && stream.feed->finished() ? 1 : 0);
}
PyObject* stream_chunks(PyObject* self, void*) {
    const Locked lock(self);
    return PyLong_FromUnsignedLongLong(as_stream(self)->feed->chunks());
}
PyObject* stream_source(PyObject* self, void*) {
    const Locked lock(self);
    PyObject* const source = as_stream(self)->source;
    return Py_NewRef(source == nullptr ? Py_None : source);
}

PyGetSetDef properties[] = {
    {"text", &stream_text, nullptr, "Text of the first choice in the chunks read so far.", nullptr},
    {"finish_reason", &stream_finish_reason, nullptr,
     "The last finish reason read; None before the first.", nullptr},
    {"usage", &stream_usage, nullptr, "Token counts, once received in a chunk; otherwise None.",
     nullptr},
    {"finished", &stream_finished, nullptr, "True once the whole response was read successfully.",
     nullptr},
    {"chunks", &stream_chunks, nullptr, "Number of chunks read.", nullptr},
    {"_source", &stream_source, nullptr, nullptr, nullptr},
    {}};

PyObject* async_next(PyObject* self) {
    PyObject* chunk = nullptr;
    bool of_exchange = false;
    {
        const Locked lock(self);
        const Stream& stream = *as_stream(self);
        if (!stream.busy) chunk = stream.feed->next();
        of_exchange = stream.exchange != nullptr;
    }
    if (chunk != nullptr) return new_ready_chunk(chunk);
    if (PyErr_Occurred() != nullptr) return nullptr;
    if (of_exchange) return new_awaited_chunk(self);
    PyObject* const module = PyImport_ImportModule("polymux.client.chat_stream");
    if (module == nullptr) return nullptr;
    PyObject* const waiting = PyObject_CallMethod(module, "advance", "O", self);
    Py_DECREF(module);
    return waiting;
}

/// Subclassed in Python for the rest: closing, context managers.
constexpr unsigned stream_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE;

PyTypeObject* make_sync_type() {
    static PyMethodDef methods[] = {{"_detach", &stream_detach, METH_NOARGS, nullptr}, {}};
    static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&stream_new)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(&stream_free)},
                                  {Py_tp_traverse, reinterpret_cast<void*>(&stream_traverse)},
                                  {Py_tp_clear, reinterpret_cast<void*>(&stream_clear)},
                                  {Py_tp_iter, reinterpret_cast<void*>(&itself)},
                                  {Py_tp_iternext, reinterpret_cast<void*>(&stream_next)},
                                  {Py_tp_getset, properties},
                                  {Py_tp_methods, methods},
                                  {}};
    return make_type("polymux._native._core.ChatStream", slots, sizeof(Stream), stream_flags);
}

PyTypeObject* make_async_type() {
    static PyMethodDef methods[] = {{"_detach", &stream_detach, METH_NOARGS, nullptr},
                                    {"_pop", &async_pop, METH_NOARGS, nullptr},
                                    {"_feed", &async_feed, METH_O, nullptr},
                                    {"_finish", &async_finish, METH_NOARGS, nullptr},
                                    {"_hold", &async_hold, METH_O, nullptr},
                                    {}};
    static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&async_stream_new)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(&stream_free)},
                                  {Py_tp_traverse, reinterpret_cast<void*>(&stream_traverse)},
                                  {Py_tp_clear, reinterpret_cast<void*>(&stream_clear)},
                                  {Py_am_aiter, reinterpret_cast<void*>(&itself)},
                                  {Py_am_anext, reinterpret_cast<void*>(&async_next)},
                                  {Py_tp_getset, properties},
                                  {Py_tp_methods, methods},
                                  {}};
    return make_type("polymux._native._core.AsyncChatStream", slots, sizeof(Stream), stream_flags);
}

}  // namespace

void register_chat_stream(py::module_& module) {
    PyTypeObject* const sync_type = make_sync_type();
    PyTypeObject* const async_type = make_async_type();
    if (sync_type == nullptr || async_type == nullptr) throw py::error_already_set();
    register_awaited_chunks();
    module.add_object("ChatStream", py::handle(reinterpret_cast<PyObject*>(sync_type)));
    module.add_object("AsyncChatStream", py::handle(reinterpret_cast<PyObject*>(async_type)));
}

}  // namespace polymux::bindings
