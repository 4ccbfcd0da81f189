// Destination of a fetched body in Python: memory, an open descriptor, or a binary file object.
#pragma once

#include <memory>
#include <span>

#include "errors.hpp"
#include "interpreter.hpp"

namespace polymux::bindings {

class BodySink {
public:
    virtual ~BodySink() = default;
    /// Called on the fetching thread, without the GIL.
    virtual Result<void> write(std::span<const std::byte> piece) = 0;
    /// The bytes if kept in memory, otherwise an empty object. GIL held.
    virtual py::object take_bytes() { return {}; }
};

/// `destination` is None for memory, ("descriptor", int) or ("file", object with write()). A
/// descriptor stays open and belongs to the caller. GIL held; raises TypeError for other values.
std::unique_ptr<BodySink> make_body_sink(const py::object& destination,
                                         std::shared_ptr<PythonCalls> calls);

}  // namespace polymux::bindings
