// The awaitables that `__anext__` of a chat stream returns instead of a coroutine.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

/// An awaitable whose value is already available, so it does not enter an event loop. New
/// reference.
PyObject* new_ready_chunk(PyObject* stolen_value);

/// An awaitable that waits for the next chunk of an asynchronous chat stream's exchange. New
/// reference.
PyObject* new_awaited_chunk(PyObject* stream);

/// Creates both types. Call once, at module import; raises.
void register_awaited_chunks();

}  // namespace polymux::bindings
