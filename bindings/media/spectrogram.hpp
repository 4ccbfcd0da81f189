// Converts audio to images and images to audio, for Python.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_spectrogram(py::module_& module);

}  // namespace polymux::bindings
