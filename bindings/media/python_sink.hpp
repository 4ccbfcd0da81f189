// Destinations from Python: memory, a path, or a binary file object.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "chunked_bytes.hpp"
#include "job.hpp"
#include "polymux/media/sink.hpp"

namespace polymux::bindings {

/// A destination that the working thread opens later.
class Output {
public:
    /// `argument` is None for memory, ("path", bytes) or ("file", object). GIL held. Raises
    /// TypeError for other values.
    static std::shared_ptr<Output> parse(const py::object& argument, bool overwrite,
                                         const Job& job);

    /// Call once, on the working thread. Refuses a destination that is also an input.
    Result<std::unique_ptr<media::ByteSink>> open(
        const std::optional<media::FileIdentity>& input,
        const std::optional<media::FileIdentity>& other_input = {});

    /// The collected bytes, if the destination is memory. Call after all is written.
    [[nodiscard]] ChunkedBytes* memory() noexcept { return in_memory_ ? &bytes_ : nullptr; }

private:
    std::string path_;
    bool overwrite_ = true;
    bool in_memory_ = false;
    ChunkedBytes bytes_;
    std::unique_ptr<media::ByteSink> sink_;
    std::optional<media::FileIdentity> identity_;
};

}  // namespace polymux::bindings
