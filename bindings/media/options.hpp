// Limits and ConvertOptions as Python classes, and checks of options by the core.
#pragma once

#include "interpreter.hpp"
#include "polymux/media/convert.hpp"
#include "polymux/media/limits.hpp"

namespace polymux::bindings {

/// A copy that no other thread can change while it is read. GIL held.
media::Limits copy_limits(const py::object& limits);
media::ConvertOptions copy_options(const py::object& options);

void register_options(py::module_& module);

}  // namespace polymux::bindings
