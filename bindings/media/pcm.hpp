// Decoded audio as one bytes object of float32 samples.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_pcm(py::module_& module);

}  // namespace polymux::bindings
