// Binary file objects of Python as destinations.
#pragma once

#include <cstddef>
#include <span>

#include "interpreter.hpp"

namespace polymux::bindings {

/// write() of a destination, with the return values of Python's file types. GIL held, except in the
/// destructor.
class PythonWriter {
public:
    /// Raises TypeError if `file` is open in text mode, or has no write().
    explicit PythonWriter(const py::object& file);

    /// Writes all bytes; raises write()'s exceptions.
    void write_all(std::span<const std::byte> bytes) const;

private:
    [[nodiscard]] std::size_t written(const py::object& returned, std::size_t offered) const;

    Reference write_;  // The bound method keeps the object.
    bool raw_ = false;
};

}  // namespace polymux::bindings
