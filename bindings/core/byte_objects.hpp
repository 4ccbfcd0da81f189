// Python's bytes, and text with one character for each byte.
#pragma once

#include <cstddef>
#include <string_view>

#include "errors.hpp"
#include "interpreter.hpp"

namespace polymux::bindings {

/// Valid as long as the object. Raises TypeError if it is not `bytes`.
inline std::string_view view_of_bytes(py::handle object) {
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(object.ptr(), &data, &size) != 0) throw py::error_already_set();
    return {data, static_cast<std::size_t>(size)};
}

/// Unlike py::bytes, raises MemoryError if there is no memory.
inline py::object bytes_object(std::string_view bytes) {
    return owned(PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
}

inline py::object latin1_text(std::string_view bytes) {
    return owned(
        PyUnicode_DecodeLatin1(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), nullptr));
}

}  // namespace polymux::bindings
