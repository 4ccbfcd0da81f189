// Whether a parsed answer is as its class expects, looked at in one go.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_answer_shape(py::module_& module);

}  // namespace polymux::bindings
