// Fingerprints of songs and questions about snippets, for Python.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_song(py::module_& module);

}  // namespace polymux::bindings
