// Sources of input bytes: a regular file, memory, or an implementation of the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "polymux/result.hpp"

namespace polymux::media {

/// Identity of a file on this machine, used to refuse a destination that is also the input.
struct FileIdentity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    bool operator==(const FileIdentity&) const = default;
};

/// A stream of input bytes. Used by one thread at a time; may move between threads.
class ByteSource {
public:
    virtual ~ByteSource() = default;

    /// Reads up to `buffer.size()` bytes; 0 means end of input. A short read is not the end.
    virtual Result<std::size_t> read(std::span<std::byte> buffer) = 0;

    /// Moves to an absolute offset in bytes. Only called if `seekable()`.
    virtual Result<void> seek(std::uint64_t offset_bytes) = 0;

    [[nodiscard]] virtual bool seekable() const noexcept = 0;

    /// Total size in bytes, if known.
    [[nodiscard]] virtual std::optional<std::uint64_t> size_bytes() const noexcept = 0;

    /// Name for messages. Never interpreted: the content alone decides the format.
    [[nodiscard]] virtual const std::string& name() const noexcept = 0;

    /// Path of a regular file, else empty.
    [[nodiscard]] virtual std::string path() const { return {}; }

    /// Set for files, to refuse a conversion of a file onto itself.
    [[nodiscard]] virtual std::optional<FileIdentity> identity() const noexcept { return {}; }
};

/// Opens a regular file. `path` is used literally, byte for byte: no scheme ("file:", "concat:"),
/// no pattern, no option is parsed from it. Folders, pipes, sockets and devices return
/// `input_unreadable`, because they would block or never end.
Result<std::unique_ptr<ByteSource>> open_file(const std::string& path);

/// Reads from memory that the caller keeps alive and unchanged until the source is destroyed.
std::unique_ptr<ByteSource> memory_source(std::span<const std::byte> bytes, std::string name);

}  // namespace polymux::media
