// Decides whether a candidate is the song or only similar.
#pragma once

#include "polymux/song/matcher.hpp"

namespace polymux::song {

/// Sets strength, confidence and acceptance by the evidence of both windows.
void decide(Candidate& candidate, double snippet_s, const Decision& decision) noexcept;

/// Whether the search can skip other speeds, tempos and pitches.
[[nodiscard]] bool is_certain(const Candidate& candidate, const Decision& decision) noexcept;

}  // namespace polymux::song
