#include "python_bytes.hpp"

namespace polymux::bindings {

HeldBuffer::HeldBuffer(const py::object& object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) {
        throw py::error_already_set();
    }
}

HeldBuffer::~HeldBuffer() {
    with_gil([this] { PyBuffer_Release(&view_); });
}

bool has_method(const py::object& object, const char* name) {
    return py::hasattr(object, name) && PyCallable_Check(object.attr(name).ptr()) != 0;
}

std::unique_ptr<HeldBuffer> held_result(const py::object& result, std::size_t size,
                                        const std::string& name) {
    if (result.is_none()) {
        PyErr_Format(PyExc_BlockingIOError,
                     "%s: read() returned None: non-blocking files are not supported. Open the "
                     "file in blocking mode",
                     name.c_str());
        throw py::error_already_set();
    }
    if (PyUnicode_Check(result.ptr())) {
        throw py::type_error(
            name +
            ": read() returned str: files in text mode are not supported. Open the "
            "file in binary mode: open(path, \"rb\")");
    }
    auto held = std::make_unique<HeldBuffer>(result);
    if (held->bytes().size() > size) {
        throw py::value_error(name + ": read() returned too many bytes (got " +
                              std::to_string(held->bytes().size()) + ", allowed at most " +
                              std::to_string(size) + ")");
    }
    return held;
}

}  // namespace polymux::bindings
