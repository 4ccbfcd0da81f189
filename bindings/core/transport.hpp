// Sessions, exchanges and event loop notifiers for Python.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_transport(py::module_& module);

}  // namespace polymux::bindings
