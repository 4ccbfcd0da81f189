// The place of an output file: what may stand there, and how failures to write it are told.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>

#include "file_descriptor.hpp"
#include "polymux/media/sink.hpp"
#include "polymux/result.hpp"

namespace polymux::media {

/// Where the output shall appear. The folder is held open, so that nobody can redirect the output
/// by replacing a folder of the path while the conversion runs.
struct Destination {
    std::string path;
    std::string name;  ///< Last component of the path.
    FileDescriptor folder;
    FileSinkOptions options;

    [[nodiscard]] Error error(ErrorCode code, std::string_view reason,
                              std::optional<int> os_errno = {}) const;
};

/// Splits `path` and opens its folder. Refuses what can never be a file's path.
Result<Destination> open_destination(const std::string& path, const FileSinkOptions& options);

/// The failure of any call on the temporary file or its folder. `space_of` is open on the file
/// system written to.
Error system_failure(const Destination& destination, int os_errno, int space_of);

/// What stands at the destination now: nothing, or a regular file that may be replaced. Anything
/// else is the error.
Result<std::optional<struct stat>> examine(const Destination& destination);

}  // namespace polymux::media
