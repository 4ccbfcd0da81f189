// The packets of all streams of a remux, in decoding order.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "media/remux_input.hpp"

namespace polymux::media {

/// Reads until every track of an unfinished input has a packet ready, or the others have waited
/// enough. A stream may end early or have a long gap, but the amount of waiting data must be
/// bounded.
Result<void> fill_tracks(std::span<const std::unique_ptr<RemuxInput>> inputs,
                         std::span<RemuxTrack* const> tracks);

/// The track whose packet is decoded first; none if no packet is ready.
[[nodiscard]] std::optional<std::size_t> earliest_track(std::span<RemuxTrack* const> tracks);

}  // namespace polymux::media
