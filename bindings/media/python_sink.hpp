// The destinations that Python hands over: memory, a path, or a binary file object.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "chunked_bytes.hpp"
#include "job.hpp"
#include "polymux/media/sink.hpp"

namespace polymux::bindings {

/// A destination that is ready to be opened on the working thread.
class Output {
public:
    /// `argument` is None for memory, ("path", bytes) or ("file", object). GIL held. Raises
    /// TypeError for anything else.
    static std::shared_ptr<Output> parse(const py::object& argument, bool overwrite,
                                         const Job& job);

    /// Once, on the working thread. A destination that is an input itself is refused.
    Result<std::unique_ptr<media::ByteSink>> open(
        const std::optional<media::FileIdentity>& input,
        const std::optional<media::FileIdentity>& other_input = {});

    /// The collected bytes, when the destination is memory; called when all is written.
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
