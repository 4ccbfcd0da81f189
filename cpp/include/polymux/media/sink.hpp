// Destinations of output bytes: a file that appears only when complete, memory, or the caller's
// stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "polymux/media/source.hpp"
#include "polymux/result.hpp"

namespace polymux::media {

/// Receives output in order. Used by one thread at a time. Lifecycle: `write`* [`patch`*] then
/// `commit`. A sink destroyed without `commit` leaves nothing behind.
class ByteSink {
public:
    virtual ~ByteSink() = default;

    virtual Result<void> write(std::span<const std::byte> bytes) = 0;

    /// Overwrites bytes already written, `offset_bytes` from the first byte that this sink
    /// received. Only called if `can_patch()`.
    virtual Result<void> patch(std::uint64_t offset_bytes, std::span<const std::byte> bytes) = 0;

    /// False for pipes and sockets. Data that belongs at the front is then held back or omitted.
    [[nodiscard]] virtual bool can_patch() const noexcept = 0;

    /// Reads back written bytes, from `offset_bytes` after the first byte: as many as exist, up to
    /// `buffer.size()`. Only called if `can_read_back()`.
    virtual Result<std::size_t> read_back(std::uint64_t offset_bytes, std::span<std::byte> buffer);

    /// True for files and memory of this process, where data can be moved after it was written.
    [[nodiscard]] virtual bool can_read_back() const noexcept { return false; }

    /// Makes the output final. Nothing is visible under the destination's name before this.
    virtual Result<void> commit() = 0;
};

struct FileSinkOptions {
    bool overwrite = true;  ///< Replace an existing regular file, atomically and only at `commit`.
    /// Also wait until the folder's entry is on the disk. Without it, a power failure right after
    /// `commit` may bring back the replaced file, but never leaves half of the new one.
    bool sync_folder = false;
    /// Refuse a destination with one of these identities.
    std::optional<FileIdentity> input = {};
    std::optional<FileIdentity> other_input = {};
};

/// Creates a file under a temporary name in the destination's folder (mode 0666 less the umask, or
/// the mode of the replaced file). `commit` syncs it and renames it to `path`. Errors at once:
/// `output_refused` for a symlink, folder, device, pipe or the input itself; `output_exists` for an
/// existing file without `overwrite`; `output_failed` for a missing folder, and for a folder or
/// file without write permission. `path` is used literally. A killed process leaves
/// ".NAME.polymux-XXXXXXXX.part" behind.
Result<std::unique_ptr<ByteSink>> create_file_sink(const std::string& path,
                                                   const FileSinkOptions& options = {});

/// Appends to `*bytes`, which the caller keeps alive. If destroyed without `commit`, it removes the
/// appended bytes.
std::unique_ptr<ByteSink> memory_sink(std::vector<std::byte>* bytes);

}  // namespace polymux::media
