// Bytes that Python objects give: their memory, and what `read` of a binary file returns.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "interpreter.hpp"

namespace polymux::bindings {

/// Contiguous memory of a Python object, held and so unmovable until released. GIL held to make
/// one; dropped from any thread.
class HeldBuffer {
public:
    /// Raises what the object raises, TypeError where it has no buffer.
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

/// What `read(size)` of a binary file gave; raises for what none ever gives. GIL held.
std::unique_ptr<HeldBuffer> held_result(const py::object& result, std::size_t size,
                                        const std::string& name);

}  // namespace polymux::bindings
