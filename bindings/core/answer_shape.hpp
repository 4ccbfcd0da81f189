// Checks in one pass whether a parsed response has the structure that its class expects.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_answer_shape(py::module_& module);

}  // namespace polymux::bindings
