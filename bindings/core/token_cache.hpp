// Short texts that come again and again, kept as str objects.
#pragma once

#include <Python.h>

#include <string_view>

namespace polymux::bindings {

/// A str of valid UTF-8, a new reference; null with an exception set when memory is out. Tokens of
/// a chat repeat, so that most of them cost a look and no allocation. GIL held; where there is none
/// the cache is left out.
PyObject* token_to_str(std::string_view utf8);

}  // namespace polymux::bindings
