// The packets of all streams of a remux, in the order of decoding.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "media/remux_input.hpp"

namespace polymux::media {

/// Reads until every track whose input goes on has a packet ready, or the others have waited
/// enough: a stream may end early or have a long gap, and what waits must stay bounded.
Result<void> fill_tracks(std::span<const std::unique_ptr<RemuxInput>> inputs,
                         std::span<RemuxTrack* const> tracks);

/// The track whose packet is to be decoded first; none when no packet is ready.
[[nodiscard]] std::optional<std::size_t> earliest_track(std::span<RemuxTrack* const> tracks);

}  // namespace polymux::media
