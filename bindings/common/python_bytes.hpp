// Bytes from Python objects: their memory, and results of `read` of a binary file.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "interpreter.hpp"

namespace polymux::bindings {

/// Contiguous memory of a Python object, which cannot move until released. Create it with the GIL
/// held; drop it on any thread.
class HeldBuffer {
public:
    /// Raises the object's exception, or TypeError if it has no buffer.
    explicit HeldBuffer(const py::object& object);
    HeldBuffer(const HeldBuffer&) = delete;
    HeldBuffer& operator=(const HeldBuffer&) = delete;
    ~HeldBuffer();

    [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
        return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
    }

private:
    Py_buffer view_{};
};

bool has_method(const py::object& object, const char* name);

/// The result of `read(size)` of a binary file. Raises if the result is invalid. GIL held.
std::unique_ptr<HeldBuffer> held_result(const py::object& result, std::size_t size,
                                        const std::string& name);

}  // namespace polymux::bindings
