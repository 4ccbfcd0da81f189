// Makes, opens and merges parts of a set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "polymux/result.hpp"
#include "polymux/song/song_set.hpp"
#include "song/manifest.hpp"
#include "song/segment_file.hpp"
#include "song/segment_merge.hpp"

namespace polymux::song {

using PartPointer = std::shared_ptr<const SongPart>;

/// A part in memory.
Result<PartPointer> part_of_bytes(std::vector<std::byte> bytes, const Parameters& parameters,
                                  std::int64_t sequence);

/// Opens a file of that folder as a part. It must be the file that the manifest describes.
Result<PartPointer> open_part(const std::string& folder, const ManifestSegment& wanted,
                              const Parameters& parameters, MappedFile::Access access);

/// Opens a newly written file as a part.
Result<PartPointer> open_new_part(const std::string& folder, std::uint64_t number,
                                  const Parameters& parameters);

/// Whether a resource such as open file descriptors is short, so the file itself may be intact.
[[nodiscard]] bool is_shortage(const Error& error) noexcept;

/// Reads the part's whole file. Returns its damage, or nothing if it is intact, or if it was merged
/// meanwhile and the manifest does not name it. Errors: `is_shortage`.
[[nodiscard]] Result<std::optional<std::string>> damage_of(const SongPart& part,
                                                           const std::string& folder,
                                                           const Parameters& parameters);

/// Builds parts in memory from these tracks: several if they exceed the limit of one.
Result<std::vector<PartPointer>> build_parts(std::span<const Track> tracks,
                                             const Parameters& parameters, std::int64_t sequence);

/// Frames that the part would occupy after a merge, without removed songs.
[[nodiscard]] std::uint64_t kept_frames(const SongPart& part, const Parameters& parameters);

/// Whether parts with that many frames in total fit on one timeline.
[[nodiscard]] bool fits(std::uint64_t frames) noexcept;

/// The part without these songs, or the same part if it contains no such song. `songs` is sorted.
PartPointer without(PartPointer part, std::span<const std::int64_t> songs);

/// Merges neighbors at the end of the list, smallest first, until each part is at least twice as
/// long as the next. A track is therefore merged as often as the list doubles.
Result<void> merge_in_memory(std::vector<PartPointer>& parts, const Parameters& parameters);

[[nodiscard]] std::vector<MergeInput> inputs_of(std::span<const PartPointer> parts);
[[nodiscard]] ManifestSegment manifest_entry(const SongPart& part);

}  // namespace polymux::song
