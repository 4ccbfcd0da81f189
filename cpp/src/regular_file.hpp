// Opening what shall be read whole: a regular file, and nothing that would block or never end.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "file_descriptor.hpp"
#include "polymux/result.hpp"

namespace polymux {

/// A file opened for reading, and what it was like then.
struct RegularFile {
    RegularFile(FileDescriptor opened, const struct stat& status) noexcept;

    FileDescriptor descriptor;
    std::uint64_t size_bytes;
    std::uint64_t device;
    std::uint64_t inode;
    timespec modified;
};

/// "cannot read 'path': reason", with the path as the error's input.
Error file_refusal(ErrorCode code, const std::string& path, std::string_view reason,
                   std::optional<int> os_errno = {});

/// Opens `path`, taken byte for byte, close-on-exec. Folders, pipes, sockets and devices are
/// refused without being opened.
Result<RegularFile> open_regular_file(const std::string& path);

/// The same of a descriptor that stays the caller's: a duplicate, so its position is shared but
/// never used. `name` is for messages.
Result<RegularFile> share_regular_file(int descriptor, const std::string& name);

}  // namespace polymux
