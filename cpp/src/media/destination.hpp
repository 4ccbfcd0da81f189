// The destination of an output file: which files may exist there, and errors of writing to it.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>

#include "file_descriptor.hpp"
#include "polymux/media/sink.hpp"
#include "polymux/result.hpp"

namespace polymux::media {

/// The file that will be written. The folder stays open: replacing a folder in the path during the
/// conversion cannot redirect the output.
struct Destination {
    std::string path;
    std::string name;  ///< Last component of the path.
    FileDescriptor folder;
    FileSinkOptions options;

    [[nodiscard]] Error error(ErrorCode code, std::string_view reason,
                              std::optional<int> os_errno = {}) const;
};

/// Splits `path` and opens its folder. Rejects paths that cannot name a file.
Result<Destination> open_destination(const std::string& path, const FileSinkOptions& options);

/// Error of a failed call on the temporary file or its folder. `space_of` is open on the
/// destination's file system.
Error system_failure(const Destination& destination, int os_errno, int space_of);

/// Returns the regular file at the destination that may be replaced, or nothing if the name is
/// free. Anything else is an error.
Result<std::optional<struct stat>> examine(const Destination& destination);

}  // namespace polymux::media
