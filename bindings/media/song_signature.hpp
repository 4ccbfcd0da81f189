// The signature by which Shazam's servers recognize a recording, for Python.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_song_signature(py::module_& module);

}  // namespace polymux::bindings
