// How far the peaks of a snippet stand out of it.
#pragma once

#include "polymux/song/matcher.hpp"
#include "polymux/song/query.hpp"

namespace polymux::song {

/// Noise fills what lies between peaks. Of a snippet without noise, a song that keeps few peaks is
/// another recording, or shares but a loop; of a noisy one it may well be the song.
[[nodiscard]] Contrast contrast_of(const Query& query, const Parameters& parameters);

}  // namespace polymux::song
