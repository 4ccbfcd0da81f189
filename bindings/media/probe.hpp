// Information about a file as plain Python objects.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_probe(py::module_& module);

}  // namespace polymux::bindings
