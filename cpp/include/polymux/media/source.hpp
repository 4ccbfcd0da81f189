// Where input bytes come from: a plain file, memory, or whatever the caller implements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "polymux/result.hpp"

namespace polymux::media {

/// Identity of a file on this machine, to refuse a destination that is the input itself.
struct FileIdentity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    bool operator==(const FileIdentity&) const = default;
};

/// A stream of input bytes. Used by one thread at a time; may be handed from thread to thread.
class ByteSource {
public:
    virtual ~ByteSource() = default;

    /// Reads up to `buffer.size()` bytes; 0 means end of input. A short read is not the end.
    virtual Result<std::size_t> read(std::span<std::byte> buffer) = 0;

    /// Moves to an absolute offset in bytes. Only called when `seekable()`.
    virtual Result<void> seek(std::uint64_t offset_bytes) = 0;

    [[nodiscard]] virtual bool seekable() const noexcept = 0;

    /// Total size in bytes, when known.
    [[nodiscard]] virtual std::optional<std::uint64_t> size_bytes() const noexcept = 0;

    /// Name for messages. Never interpreted: content alone decides the format.
    [[nodiscard]] virtual const std::string& name() const noexcept = 0;

    /// Set for files, so that a conversion onto its own input can be refused.
    [[nodiscard]] virtual std::optional<FileIdentity> identity() const noexcept { return {}; }
};

/// Opens a regular file. `path` is taken literally, byte for byte: no scheme ("file:", "concat:"),
/// no pattern, no option is ever read out of it. Folders, pipes, sockets and devices are refused
/// with `input_unreadable`; they would block or never end.
Result<std::unique_ptr<ByteSource>> open_file(const std::string& path);

/// Reads from memory that the caller keeps alive and unchanged until the source is destroyed.
std::unique_ptr<ByteSource> memory_source(std::span<const std::byte> bytes, std::string name);

}  // namespace polymux::media
