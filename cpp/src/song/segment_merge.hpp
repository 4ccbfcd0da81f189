// One segment of several, without what was removed from them.
#pragma once

#include <cstdint>
#include <span>

#include "polymux/song/segment.hpp"
#include "song/segment_writer.hpp"

namespace polymux::song {

struct MergeInput {
    const Segment* segment = nullptr;
    std::span<const std::int64_t> removed;  ///< Songs that are left out; sorted.

    [[nodiscard]] bool keeps(const TrackRow& row) const noexcept;
};

/// Writes to `target` the very bytes that `build_segment` makes of the tracks that are kept. Reads
/// the inputs from front to end and holds no more than a few megabytes of them. Errors: those of
/// the target; `limit_exceeded` as of `build_segment`; `undecodable` where an input contradicts
/// itself. What else is wrong in an input goes into the output: verify inputs first.
Result<void> merge_segments(const Parameters& parameters, std::span<const MergeInput> inputs,
                            std::uint64_t generation, ByteTarget& target);

}  // namespace polymux::song
