// Writes Python objects as JSON text directly to a buffer.
#pragma once

#include "interpreter.hpp"
#include "polymux/request/json_text.hpp"

namespace polymux::bindings {

/// Appends the object's text. Reads strings in place, without caching UTF-8 in them. Raises
/// InvalidRequestError or TypeError with the path of the invalid value; some of the text may have
/// been written by then. GIL held, or attached in a build without it; may run the caller's code.
void write_json(json::Buffer& buffer, PyObject* object);

}  // namespace polymux::bindings
