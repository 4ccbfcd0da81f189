// Combines video and audio streams of files into one file, for Python.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_remux(py::module_& module);

}  // namespace polymux::bindings
