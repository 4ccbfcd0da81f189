// Opens input that will be read completely: a regular file, but nothing that would block or never
// end.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "file_descriptor.hpp"
#include "polymux/result.hpp"

namespace polymux {

/// A file opened for reading, with its size and times at that moment.
struct RegularFile {
    RegularFile(FileDescriptor opened, const struct stat& status) noexcept;

    FileDescriptor descriptor;
    std::uint64_t size_bytes;
    std::uint64_t device;
    std::uint64_t inode;
    timespec modified;
};

/// Makes "cannot read 'path': reason", with the path as the error's input.
Error file_refusal(ErrorCode code, const std::string& path, std::string_view reason,
                   std::optional<int> os_errno = {});

/// Opens `path`, used byte for byte, close-on-exec. Refuses folders, pipes, sockets and devices
/// without opening them.
Result<RegularFile> open_regular_file(const std::string& path);

/// The same for a descriptor that the caller keeps. It is duplicated; the shared position is never
/// used. `name` is for messages.
Result<RegularFile> share_regular_file(int descriptor, const std::string& name);

}  // namespace polymux
