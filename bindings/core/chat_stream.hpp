// Iterators over a chat stream's chunks, for bytes from any source.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

/// Adds `ChatStream` and `AsyncChatStream` to the module.
void register_chat_stream(py::module_& module);

}  // namespace polymux::bindings
