// Inputs from Python: a path, an object with a buffer, or a binary file object.
#pragma once

#include <memory>
#include <string>

#include "job.hpp"
#include "polymux/media/source.hpp"

namespace polymux::bindings {

/// An input that the working thread opens later. Paths are opened only there, so thousands of
/// queued conversions keep no file open.
class Input {
public:
    /// `argument` is ("path", bytes, name), ("bytes", buffer, name) or ("file", object, name). GIL
    /// held. Raises TypeError for other values.
    static std::shared_ptr<Input> parse(const py::object& argument, const Job& job);

    /// Call once, on the working thread.
    Result<std::unique_ptr<media::ByteSource>> open();

private:
    std::string path_;
    std::unique_ptr<media::ByteSource> source_;
};

/// The regular file behind an object's `fileno()`, if any. GIL held.
std::optional<media::FileIdentity> identity_of(const py::object& file);

/// The object's descriptor, or -1. GIL held.
int descriptor_of(const py::object& file);

}  // namespace polymux::bindings
