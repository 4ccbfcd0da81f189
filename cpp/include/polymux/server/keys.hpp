// API keys as a server checks them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace polymux::server {

/// An API key without its text.
struct Key {
    std::array<std::uint8_t, 32> sha256{};
    std::optional<std::vector<std::string>> scopes = {};            ///< Absent: all.
    double expires_at_s = std::numeric_limits<double>::infinity();  ///< Since 1970.

    [[nodiscard]] bool allows(std::string_view scope) const noexcept;
};

/// Identifies the content of a file: it changes when the file is replaced or written.
struct FileStamp {
    std::int64_t modified_ns = 0;
    std::int64_t size_bytes = 0;
    std::uint64_t inode = 0;
    std::uint32_t mode = 0;

    friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// The keys of a file; does not change.
class KeyTable {
public:
    /// `path` is the file that the keys come from, and `stamp` its state when it was read; absent
    /// if there was no file.
    KeyTable(std::string path, std::optional<FileStamp> stamp, std::vector<Key> keys);

    /// The index of the key with this text; absent if it is unknown or has expired. Takes the same
    /// time for right and wrong keys.
    [[nodiscard]] std::optional<std::size_t> find(std::string_view text,
                                                  double now_s) const noexcept;
    [[nodiscard]] const Key& operator[](std::size_t index) const noexcept { return keys_[index]; }
    /// Whether the file is as it was when it was read.
    [[nodiscard]] bool is_current() const noexcept;

private:
    const std::string path_;
    const std::optional<FileStamp> stamp_;
    const std::vector<Key> keys_;
};

}  // namespace polymux::server
