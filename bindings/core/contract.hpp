// Contract and checker for Python.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_contract(py::module_& module);

}  // namespace polymux::bindings
