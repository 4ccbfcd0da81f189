// The index of songs as a Python class.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_song_index(py::module_& module);

}  // namespace polymux::bindings
