// Similarity of a text to titles and artists, for Python.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_title_match(py::module_& module);

}  // namespace polymux::bindings
