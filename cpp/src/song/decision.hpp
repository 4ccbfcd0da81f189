// The decision: is a candidate the song, or only like it?
#pragma once

#include "polymux/song/matcher.hpp"

namespace polymux::song {

/// Sets strength, confidence and whether it is accepted, by the evidence of both windows.
void decide(Candidate& candidate, double snippet_s, const Decision& decision) noexcept;

/// Whether no other way of playing needs to be tried.
[[nodiscard]] bool is_certain(const Candidate& candidate, const Decision& decision) noexcept;

}  // namespace polymux::song
