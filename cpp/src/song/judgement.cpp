#include "song/judgement.hpp"

#include <algorithm>
#include <cmath>

namespace polymux::song {

namespace {

/// Found while looking for the song as it is.
constexpr float unchanged = 0.0047F;

float strength_of(const WindowEvidence& evidence) noexcept {
    return evidence.likelihood / std::sqrt(static_cast<float>(std::max(evidence.peaks, 1)));
}

}  // namespace

void decide(Candidate& candidate, const Decision& decision) noexcept {
    float score = decision.bias;
    for (std::size_t window = 0; window < candidate.evidence.size(); ++window) {
        score += decision.strength[window] *
                 std::log1p(std::max(strength_of(candidate.evidence[window]), 0.0F));
    }
    score += decision.strongest_contrast * candidate.contrast.strongest;
    score += decision.dense_contrast * candidate.contrast.dense;
    if (candidate.change == Change::speed && std::abs(candidate.tempo - 1.0F) > unchanged) {
        score += decision.speed_changed;
    }
    const int peaks = candidate.evidence[0].peaks;
    score += decision.length * std::log(static_cast<float>(std::max(peaks, 1)));
    candidate.strength = score;
    candidate.confidence = 1.0F / (1.0F + std::exp(-score));
    candidate.accepted = candidate.confidence >= decision.accepted &&
                         candidate.evidence[0].hits >= decision.least_hits;
}

bool is_certain(const Candidate& candidate, const Decision& decision) noexcept {
    return candidate.accepted &&
           candidate.evidence[0].likelihood + candidate.evidence[1].likelihood >
               decision.certain_likelihood;
}

}  // namespace polymux::song
