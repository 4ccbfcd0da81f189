// How far the peaks of a snippet stand out.
#pragma once

#include "polymux/song/matcher.hpp"
#include "polymux/song/query.hpp"

namespace polymux::song {

/// Noise fills the gaps between peaks. If a clean snippet keeps few peaks of a song, it is another
/// recording or shares only a loop; a noisy snippet may still be the song.
[[nodiscard]] Contrast contrast_of(const Query& query, const Parameters& parameters);

}  // namespace polymux::song
