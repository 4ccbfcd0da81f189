// Parts of a set: made, opened, merged.
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

/// A part in a file of that folder, which must be the one that the manifest means.
Result<PartPointer> open_part(const std::string& folder, const ManifestSegment& wanted,
                              const Parameters& parameters, MappedFile::Access access);

/// A part in a file that was written just now.
Result<PartPointer> open_new_part(const std::string& folder, std::uint64_t number,
                                  const Parameters& parameters);

/// Whether something is scarce now, such as files that may be open, and the file itself may be as
/// it should be.
[[nodiscard]] bool is_shortage(const Error& error) noexcept;

/// What is wrong with the part's file, read whole; none where it is as it should be, or where it
/// has been merged meanwhile and the manifest names it no more. Errors: `is_shortage`.
[[nodiscard]] Result<std::optional<std::string>> damage_of(const SongPart& part,
                                                           const std::string& folder,
                                                           const Parameters& parameters);

/// The parts in memory that these tracks become: several where they are longer than one may be.
Result<std::vector<PartPointer>> build_parts(std::span<const Track> tracks,
                                             const Parameters& parameters, std::int64_t sequence);

/// Frames that the part would take up in a merged one: without those of songs that were removed.
[[nodiscard]] std::uint64_t kept_frames(const SongPart& part, const Parameters& parameters);

/// Whether parts of so many frames together fit on one line of time.
[[nodiscard]] bool fits(std::uint64_t frames) noexcept;

/// The part without those of these songs that it has, or the very same where it has none. `songs`
/// is sorted.
PartPointer without(PartPointer part, std::span<const std::int64_t> songs);

/// Merges neighbours at the end of the list, the later the smaller, until each part is at least
/// twice as long as the one behind it: a track is merged as often as the list doubles.
Result<void> merge_in_memory(std::vector<PartPointer>& parts, const Parameters& parameters);

[[nodiscard]] std::vector<MergeInput> inputs_of(std::span<const PartPointer> parts);
[[nodiscard]] ManifestSegment manifest_entry(const SongPart& part);

}  // namespace polymux::song
