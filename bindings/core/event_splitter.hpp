// Server-sent events for Python.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_event_splitter(py::module_& module);

}  // namespace polymux::bindings
