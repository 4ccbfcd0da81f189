#include "python_writer.hpp"

#include <string>

namespace polymux::bindings {

PythonWriter::PythonWriter(const py::object& file) {
    const py::module_ io = py::module_::import("io");
    if (py::isinstance(file, io.attr("TextIOBase"))) {
        throw py::type_error(
            "invalid destination: files in text mode are not supported. Open the file in binary "
            "mode: open(path, \"wb\")");
    }
    if (!py::hasattr(file, "write")) {
        throw py::type_error(
            std::string(
                "invalid destination: must be a path or a binary file (got an object of type ") +
            Py_TYPE(file.ptr())->tp_name + ", which has no write() method)");
    }
    write_ = Reference(file.attr("write"));
    raw_ = py::isinstance(file, io.attr("RawIOBase"));
}

void PythonWriter::write_all(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
        const py::bytes offered(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        const py::object returned = invoke(write_.get(), py::make_tuple(offered));
        bytes = bytes.subspan(written(returned, bytes.size()));
    }
}

std::size_t PythonWriter::written(const py::object& returned, std::size_t offered) const {
    if (returned.is_none()) {
        if (!raw_) return offered;
        PyErr_SetString(PyExc_BlockingIOError,
                        "write() of the destination returned None: non-blocking files are not "
                        "supported. Open the file in blocking mode");
        throw py::error_already_set();
    }
    const auto count = returned.cast<long long>();
    if (count <= 0 || static_cast<unsigned long long>(count) > offered) {
        throw py::value_error(
            "write() of the destination returned an invalid number of bytes (got " +
            std::to_string(count) + ", allowed 1 to " + std::to_string(offered) + ")");
    }
    return static_cast<std::size_t>(count);
}

}  // namespace polymux::bindings
