// Conversions to MP3 that Python starts, observes and awaits.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_conversion(py::module_& module);

}  // namespace polymux::bindings
