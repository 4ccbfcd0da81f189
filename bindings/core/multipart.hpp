// Multipart bodies for Python.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_multipart(py::module_& module);

}  // namespace polymux::bindings
