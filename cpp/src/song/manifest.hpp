// The small file that lists the files of the index. Replacing it publishes a new index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/result.hpp"
#include "polymux/song/parameters.hpp"

namespace polymux::song {

inline constexpr std::string_view manifest_name = "manifest";

/// "000000000017.segment" for 17.
[[nodiscard]] std::string segment_name(std::uint64_t number);
/// 17 for "000000000017.segment"; nothing for any other name.
[[nodiscard]] std::optional<std::uint64_t> segment_number(std::string_view name) noexcept;

struct ManifestSegment {
    std::uint64_t number = 0;
    std::uint64_t size_bytes = 0;
    std::uint32_t checksum = 0;         ///< The header's; the header has those of the sections.
    std::vector<std::int64_t> removed;  ///< Removed songs; sorted.
};

struct Manifest {
    std::uint64_t generation = 0;
    std::int64_t covered_sequence = 0;
    std::vector<ManifestSegment> segments;
};

/// Identifies a replaced file without reading it.
struct FileStamp {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t size_bytes = 0;
    std::int64_t modified_ns = 0;

    friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// Returns nothing if the file does not exist.
[[nodiscard]] std::optional<FileStamp> stamp_of(const std::string& path) noexcept;

struct LoadedManifest {
    Manifest manifest;
    FileStamp stamp;
};

[[nodiscard]] std::vector<std::byte> encode(const Manifest& manifest, const Parameters& parameters);

/// Errors: `undecodable` for bytes that are damaged, or of other parameters or another version.
Result<Manifest> decode(std::span<const std::byte> bytes, const Parameters& parameters);

/// Errors: as in `decode`; `input_not_found`, `input_unreadable`.
Result<LoadedManifest> load_manifest(const std::string& folder, const Parameters& parameters);

/// Replaces the manifest of that folder atomically and durably.
Result<void> replace_manifest(const std::string& folder, const Manifest& manifest,
                              const Parameters& parameters);

}  // namespace polymux::song
