// Files put together out of others' video and audio, for Python.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_remux(py::module_& module);

}  // namespace polymux::bindings
