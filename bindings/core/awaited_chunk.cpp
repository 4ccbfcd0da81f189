#include "awaited_chunk.hpp"

#include <atomic>
#include <exception>
#include <utility>

#include "chat_stream_object.hpp"

namespace polymux::bindings {

namespace {

struct Ready {
    PyObject_HEAD PyObject* value;
};

/// Awaited by one task, like a coroutine; a second caller is refused while `running`. `waiting` is
/// the iterator of the future that `exchange` completes. `source` keeps the exchange alive, even if
/// the stream is closed meanwhile. All are null while nothing is awaited.
struct Awaited {
    PyObject_HEAD PyObject* stream;
    PyObject* source;
    ExchangeHandle* exchange;
    PyObject* waiting;
    std::atomic<bool> running;
    bool holds;  // The stream is busy for this.
    bool over;
};

// Lives as long as the process.
PyTypeObject* ready_type = nullptr;
PyTypeObject* awaited_type = nullptr;
std::atomic<PyObject*> running_loop = nullptr;  // asyncio.get_running_loop
PyObject* create_future = nullptr;

Awaited& as_awaited(PyObject* object) noexcept {
    return *reinterpret_cast<Awaited*>(object);
}

void free_ready(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    Py_XDECREF(reinterpret_cast<Ready*>(self)->value);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject* take_value(PyObject* self) {
    const Locked lock(self);
    PyObject* const value = std::exchange(reinterpret_cast<Ready*>(self)->value, nullptr);
    if (value == nullptr) PyErr_SetString(PyExc_RuntimeError, "a chunk can be awaited only once");
    return value;
}

PySendResult ready_send(PyObject* self, PyObject*, PyObject** result) {
    *result = take_value(self);
    return *result == nullptr ? PYGEN_ERROR : PYGEN_RETURN;
}

PyObject* ready_next(PyObject* self) {
    PyObject* const value = take_value(self);
    if (value != nullptr) {
        PyErr_SetObject(PyExc_StopIteration, value);
        Py_DECREF(value);
    }
    return nullptr;
}

/// Runs a body that may throw. Returns false with an exception set if it did.
template <typename Body>
bool restores_errors(Body&& body) {
    try {
        body();
        return true;
    } catch (py::error_already_set& raised) {
        raised.restore();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return false;
}

/// Ends a wait. If it failed, ends the exchange too. Keeps an exception that is set.
void end_wait(Awaited& awaited, bool failed) {
    Py_CLEAR(awaited.waiting);
    if (awaited.exchange == nullptr) return;
    const py::error_scope kept;
    ExchangeHandle& exchange = *std::exchange(awaited.exchange, nullptr);
    if (!restores_errors([&] {
            exchange.set_waiter(py::none());
            if (failed) exchange.close();
        })) {
        PyErr_WriteUnraisable(awaited.stream);
    }
    Py_CLEAR(awaited.source);
}

/// Frees the stream for the next reader.
void release_stream(Awaited& awaited, bool failed) {
    end_wait(awaited, failed);
    awaited.over = true;
    if (!std::exchange(awaited.holds, false)) return;
    const Locked lock(awaited.stream);
    as_stream(awaited.stream)->busy = false;
}

/// Creates a future of the running loop for the exchange, which `source` keeps alive. Returns false
/// with an exception set.
bool begin_wait(Awaited& awaited, const py::object& source, ExchangeHandle& exchange) {
    const py::object loop = py::reinterpret_steal<py::object>(PyObject_CallNoArgs(running_loop));
    if (!loop) return false;
    if (!exchange.is_of_loop(loop)) {
        PyErr_SetString(
            PyExc_RuntimeError,
            "stream: belongs to another event loop. Read it in the event loop that started it");
        return false;
    }
    const py::object future =
        py::reinterpret_steal<py::object>(PyObject_CallMethodNoArgs(loop.ptr(), create_future));
    if (!future) return false;
    if (!restores_errors([&] { exchange.set_waiter(future); })) return false;
    awaited.source = Py_NewRef(source.ptr());
    awaited.exchange = &exchange;
    awaited.waiting = PyObject_GetIter(future.ptr());
    return awaited.waiting != nullptr;
}

enum class Step { chunk, wait, failed };

/// Results in a chunk, a future to wait for, or an exception.
Step advance(Awaited& awaited, PyObject** chunk) {
    const Locked lock(awaited.stream);
    Stream& stream = *as_stream(awaited.stream);
    for (;;) {
        *chunk = stream.feed->next();
        if (*chunk != nullptr) return Step::chunk;
        if (PyErr_Occurred() != nullptr) return Step::failed;
        if (stream.feed->at_end()) {
            tell_end(*stream.feed, PyExc_StopAsyncIteration);
            return Step::failed;
        }
        if (stream.exchange == nullptr) {  // Closed meanwhile.
            stream.feed->finish();
            if (PyErr_Occurred() != nullptr) return Step::failed;
            continue;
        }
        // Kept here, because the loop's code may run meanwhile, and another thread may close the
        // stream.
        const py::object source = py::reinterpret_borrow<py::object>(stream.source);
        ExchangeHandle& exchange = *stream.exchange;
        if (!exchange.has_news()) {
            if (!begin_wait(awaited, source, exchange)) return Step::failed;
            // News that arrived before the future existed did not complete it.
            if (!exchange.has_news()) return Step::wait;
            end_wait(awaited, false);
        }
        if (!restores_errors([&] { stream.feed->take(exchange); })) return Step::failed;
    }
}

bool refuse_second_user(const Claim& mine) {
    if (mine) return false;
    PyErr_SetString(PyExc_RuntimeError, "this chunk is already being awaited");
    return true;
}

PySendResult fail(Awaited& awaited) {
    // The stream's own end closes nothing that is still open.
    release_stream(awaited, PyErr_ExceptionMatches(PyExc_StopAsyncIteration) == 0);
    return PYGEN_ERROR;
}

PySendResult awaited_send(PyObject* self, PyObject* sent, PyObject** result) {
    Awaited& awaited = as_awaited(self);
    *result = nullptr;
    const Claim mine(awaited.running);
    if (refuse_second_user(mine)) return PYGEN_ERROR;
    if (awaited.over) {
        PyErr_SetString(PyExc_RuntimeError, "a chunk can be awaited only once");
        return PYGEN_ERROR;
    }
    if (!awaited.holds) {
        const Locked lock(awaited.stream);
        if (refuse_second_reader(*as_stream(awaited.stream))) return PYGEN_ERROR;
        awaited.holds = as_stream(awaited.stream)->busy = true;
    }
    for (;;) {
        if (awaited.waiting != nullptr) {
            const PySendResult sending = PyIter_Send(awaited.waiting, sent, result);
            if (sending == PYGEN_NEXT) return sending;
            if (sending == PYGEN_ERROR) return fail(awaited);
            Py_CLEAR(*result);
            end_wait(awaited, false);
        }
        const Step step = advance(awaited, result);
        if (step == Step::failed) return fail(awaited);
        if (step == Step::chunk) {
            release_stream(awaited, false);
            return PYGEN_RETURN;
        }
    }
}

PyObject* awaited_next(PyObject* self) {
    PyObject* result = nullptr;
    if (awaited_send(self, Py_None, &result) != PYGEN_RETURN) return result;
    PyErr_SetObject(PyExc_StopIteration, result);
    Py_DECREF(result);
    return nullptr;
}

PyObject* awaited_send_method(PyObject* self, PyObject*) {
    return awaited_next(self);
}

/// A canceled task throws here; the exchange ends together with the wait.
PyObject* awaited_throw(PyObject* self, PyObject* arguments) {
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    if (PyArg_ParseTuple(arguments, "O|OO", &type, &value, &traceback) == 0) return nullptr;
    const Claim mine(as_awaited(self).running);
    if (refuse_second_user(mine)) return nullptr;
    release_stream(as_awaited(self), true);
    if (PyExceptionInstance_Check(type)) {
        PyErr_SetObject(PyExceptionInstance_Class(type), type);
    } else if (value != nullptr && PyExceptionInstance_Check(value)) {
        PyErr_SetObject(PyExceptionInstance_Class(value), value);
    } else {
        PyErr_SetObject(type, value);
    }
    return nullptr;
}

PyObject* awaited_close(PyObject* self, PyObject*) {
    const Claim mine(as_awaited(self).running);
    if (refuse_second_user(mine)) return nullptr;
    release_stream(as_awaited(self), true);
    Py_RETURN_NONE;
}

int awaited_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_awaited(self).stream);
    Py_VISIT(as_awaited(self).source);
    Py_VISIT(as_awaited(self).waiting);
    return 0;
}

int awaited_clear(PyObject* self) {
    if (as_awaited(self).stream != nullptr) release_stream(as_awaited(self), true);
    Py_CLEAR(as_awaited(self).stream);
    return 0;
}

void awaited_free(PyObject* self) {
    PyObject_GC_UnTrack(self);
    awaited_clear(self);
    PyTypeObject* const type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyTypeObject* make_ready_type() {
    static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&free_ready)},
                                  {Py_tp_iter, reinterpret_cast<void*>(&itself)},
                                  {Py_tp_iternext, reinterpret_cast<void*>(&ready_next)},
                                  {Py_am_await, reinterpret_cast<void*>(&itself)},
                                  {Py_am_send, reinterpret_cast<void*>(&ready_send)},
                                  {}};
    return make_type("polymux._native._core.ReadyChunk", slots, sizeof(Ready),
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION);
}

PyTypeObject* make_awaited_type() {
    static PyMethodDef methods[] = {{"send", &awaited_send_method, METH_O, nullptr},
                                    {"throw", &awaited_throw, METH_VARARGS, nullptr},
                                    {"close", &awaited_close, METH_NOARGS, nullptr},
                                    {}};
    static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&awaited_free)},
                                  {Py_tp_traverse, reinterpret_cast<void*>(&awaited_traverse)},
                                  {Py_tp_clear, reinterpret_cast<void*>(&awaited_clear)},
                                  {Py_tp_iter, reinterpret_cast<void*>(&itself)},
                                  {Py_tp_iternext, reinterpret_cast<void*>(&awaited_next)},
                                  {Py_am_await, reinterpret_cast<void*>(&itself)},
                                  {Py_am_send, reinterpret_cast<void*>(&awaited_send)},
                                  {Py_tp_methods, methods},
                                  {}};
    return make_type("polymux._native._core.AwaitedChunk", slots, sizeof(Awaited),
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION);
}

/// Not at import, so a program without event loops does not load asyncio.
bool find_asyncio() {
    if (running_loop != nullptr) return true;
    return restores_errors([] {
        py::object found = py::module_::import("asyncio").attr("get_running_loop");
        PyObject* none = nullptr;
        if (running_loop.compare_exchange_strong(none, found.ptr())) found.release();
    });
}

}  // namespace

PyObject* new_ready_chunk(PyObject* stolen_value) {
    Ready* const ready = PyObject_New(Ready, ready_type);
    if (ready == nullptr) {
        Py_DECREF(stolen_value);
        return nullptr;
    }
    ready->value = stolen_value;
    return reinterpret_cast<PyObject*>(ready);
}

PyObject* new_awaited_chunk(PyObject* stream) {
    if (!find_asyncio()) return nullptr;
    PyObject* const made = awaited_type->tp_alloc(awaited_type, 0);
    if (made != nullptr) as_awaited(made).stream = Py_NewRef(stream);
    return made;
}

void register_awaited_chunks() {
    ready_type = make_ready_type();
    awaited_type = make_awaited_type();
    create_future = PyUnicode_InternFromString("create_future");
    if (ready_type == nullptr || awaited_type == nullptr || create_future == nullptr) {
        throw py::error_already_set();
    }
}

}  // namespace polymux::bindings
