// Where output bytes go: a file that appears only when complete, memory, or the caller's stream.
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

/// Receives output in order. Used by one thread at a time.
/// Life: `write`* [`patch`*] then `commit`; destroyed without `commit`, it leaves nothing behind.
class ByteSink {
public:
    virtual ~ByteSink() = default;

    virtual Result<void> write(std::span<const std::byte> bytes) = 0;

    /// Overwrites bytes already written, `offset_bytes` from the first byte this sink received.
    /// Only called when `can_patch()`.
    virtual Result<void> patch(std::uint64_t offset_bytes, std::span<const std::byte> bytes) = 0;

    /// False for pipes and sockets: whatever must stand at the front is then held back or left out.
    [[nodiscard]] virtual bool can_patch() const noexcept = 0;

    /// Reads again what was written, `offset_bytes` from the first byte: as many bytes as there
    /// are, up to `buffer.size()`. Only called when `can_read_back()`.
    virtual Result<std::size_t> read_back(std::uint64_t offset_bytes, std::span<std::byte> buffer);

    /// True for files and memory of this process: what must move after it was written can.
    [[nodiscard]] virtual bool can_read_back() const noexcept { return false; }

    /// Makes the output final. Nothing is visible under the destination's name before this.
    virtual Result<void> commit() = 0;
};

struct FileSinkOptions {
    bool overwrite = true;  ///< Replace an existing regular file, atomically and only at `commit`.
    /// Also wait until the folder's entry is on the disk. Without it a power cut just after
    /// `commit` may bring back the file that was replaced, never half of the new one.
    bool sync_folder = false;
    /// A destination with one of these identities is refused.
    std::optional<FileIdentity> input = {};
    std::optional<FileIdentity> other_input = {};
};

/// A file written under a temporary name in the destination's folder (mode 0666 less the umask, or
/// the mode of the file it replaces), synced, then renamed over `path`.
/// Refused at once: a symlink, a folder, a device, a pipe (`output_refused`), an existing file
/// without `overwrite` (`output_exists`), the input itself. A missing folder or one without write
/// permission, and an existing file that may not be written, are `output_failed`. `path` is taken
/// literally. A process that is killed leaves ".NAME.polymux-XXXXXXXX.part" behind.
Result<std::unique_ptr<ByteSink>> create_file_sink(const std::string& path,
                                                   const FileSinkOptions& options = {});

/// Appends to `*bytes`, which the caller keeps alive; destroyed without `commit`, it takes back
/// what it appended.
std::unique_ptr<ByteSink> memory_sink(std::vector<std::byte>* bytes);

}  // namespace polymux::media
