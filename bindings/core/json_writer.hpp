// JSON text of Python objects, straight into a buffer.
#pragma once

#include "interpreter.hpp"
#include "polymux/request/json_text.hpp"

namespace polymux::bindings {

/// Appends the object's text. Strings are read where they lie: no str gets a UTF-8 copy of itself.
/// Raises InvalidRequestError or TypeError with the path to the culprit; part of the text may have
/// been written then. GIL held, or attached in a build without it; may run the caller's code.
void write_json(json::Buffer& buffer, PyObject* object);

}  // namespace polymux::bindings
