// Files of the index: written atomically, read through memory maps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "file_descriptor.hpp"
#include "polymux/result.hpp"
#include "polymux/song/segment.hpp"
#include "song/segment_writer.hpp"

namespace polymux::song {

/// Suffix of the name of an incomplete file.
inline constexpr std::string_view unfinished_ending = ".part";

/// A file that appears, or replaces another, when it is complete and on the disk. It is deleted if
/// `commit` is not called or fails.
class AtomicFile final : public ByteTarget {
public:
    /// Creates `folder/name`. During writing, the name also has `unfinished_ending`. A leftover
    /// file with that name is deleted.
    static Result<std::unique_ptr<AtomicFile>> create(const std::string& folder,
                                                      const std::string& name);
    ~AtomicFile() override;

    [[nodiscard]] Result<void> append(std::span<const std::byte> bytes) override;
    [[nodiscard]] Result<void> replace_front(std::span<const std::byte> bytes) override;

    /// Syncs the file, renames it, then syncs the folder.
    [[nodiscard]] Result<void> commit();

private:
    AtomicFile(std::string folder, std::string name);
    [[nodiscard]] std::string unfinished_path() const;
    [[nodiscard]] Error failure(int os_errno) const;
    [[nodiscard]] Result<void> flush();
    [[nodiscard]] Result<void> write_at(std::uint64_t offset_bytes,
                                        std::span<const std::byte> bytes);

    std::string folder_;
    std::string name_;
    FileDescriptor file_;
    bool unfinished_ = false;
    std::vector<std::byte> buffer_;
    std::uint64_t flushed_bytes_ = 0;
};

/// A file's bytes in memory, shared with all other maps of the file. The file must not be
/// shortened: index files are replaced, never modified.
class MappedFile {
public:
    enum class Access : std::uint8_t { random, sequential };

    static Result<MappedFile> open(const std::string& path, Access access);
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

private:
    explicit MappedFile(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

    std::span<const std::byte> bytes_;
};

/// All names in a folder except "." and "..".
Result<std::vector<std::string>> names_in(const std::string& folder);

}  // namespace polymux::song
