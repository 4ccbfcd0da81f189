// Merges several segments into one, without removed songs.
#pragma once

#include <cstdint>
#include <span>

#include "polymux/song/segment.hpp"
#include "song/segment_writer.hpp"

namespace polymux::song {

struct MergeInput {
    const Segment* segment = nullptr;
    std::span<const std::int64_t> removed;  ///< Songs to drop; sorted.

    [[nodiscard]] bool keeps(const TrackRow& row) const noexcept;
};

/// Writes to `target` exactly the bytes that `build_segment` makes of the kept tracks. Reads the
/// inputs sequentially and holds only a few megabytes of them. Errors: those of the target;
/// `limit_exceeded` as in `build_segment`; `undecodable` if an input is inconsistent. Other damage
/// in an input is copied to the output, so verify inputs first.
Result<void> merge_segments(const Parameters& parameters, std::span<const MergeInput> inputs,
                            std::uint64_t generation, ByteTarget& target);

}  // namespace polymux::song
