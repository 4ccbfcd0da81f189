// Writes videos from frames and reads frames from videos, for Python.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_video(py::module_& module);

}  // namespace polymux::bindings
