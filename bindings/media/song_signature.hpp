// The signature of a recording, by which others' servers recognise songs.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_song_signature(py::module_& module);

}  // namespace polymux::bindings
