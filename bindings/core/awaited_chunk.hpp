// What `__anext__` of a chat stream gives, where no coroutine is needed.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

/// An awaitable whose value is there already: no event loop is entered for it. New reference.
PyObject* new_ready_chunk(PyObject* stolen_value);

/// An awaitable that waits until the exchange of an asynchronous chat stream has the next chunk.
/// New reference.
PyObject* new_awaited_chunk(PyObject* stream);

/// Makes both types. Once, when the module is imported; raises.
void register_awaited_chunks();

}  // namespace polymux::bindings
