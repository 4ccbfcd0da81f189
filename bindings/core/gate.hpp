// Rules of requests, which hold for the server and for `router()` alike.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_gate(py::module_& module);

}  // namespace polymux::bindings
