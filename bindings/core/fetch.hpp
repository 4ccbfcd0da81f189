// The fetcher with SSRF protection, for Python.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_fetch(py::module_& module);

}  // namespace polymux::bindings
