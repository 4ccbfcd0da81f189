// Fingerprints of songs and questions about snippets, for Python.
#pragma once

#include "interpreter.hpp"
#include "polymux/song/parameters.hpp"

namespace polymux::bindings {

/// Of every fingerprint and index that Python makes.
inline constexpr song::Parameters song_parameters;

void register_song(py::module_& module);

}  // namespace polymux::bindings
