// Caches frequent short texts as str objects.
#pragma once

#include <Python.h>

#include <string_view>

namespace polymux::bindings {

/// A str of valid UTF-8, a new reference; null with an exception set if out of memory. Tokens of a
/// chat repeat, so most need only a lookup and no allocation. GIL held; builds without it skip the
/// cache.
PyObject* token_to_str(std::string_view utf8);

}  // namespace polymux::bindings
