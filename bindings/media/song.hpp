// Fingerprints of songs and queries by snippets, for Python.
#pragma once

#include "interpreter.hpp"
#include "polymux/song/parameters.hpp"

namespace polymux::bindings {

/// For every fingerprint and index made in Python.
inline constexpr song::Parameters song_parameters;

void register_song(py::module_& module);

}  // namespace polymux::bindings
