#include "song/decision.hpp"

#include <algorithm>
#include <cmath>

namespace polymux::song {

namespace {

/// Number of expected peaks, at least that of a song that covers the whole snippet.
float peaks_of(const WindowEvidence& evidence, double snippet_s,
               const Decision& decision) noexcept {
    const float min_peaks = decision.min_peaks_per_second * static_cast<float>(snippet_s);
    return std::max({static_cast<float>(evidence.peaks), min_peaks, 1.0F});
}

}  // namespace

void decide(Candidate& candidate, double snippet_s, const Decision& decision) noexcept {
    float score = decision.bias;
    for (std::size_t window = 0; window < candidate.evidence.size(); ++window) {
        const WindowEvidence& evidence = candidate.evidence[window];
        const float strength =
            evidence.likelihood / std::sqrt(peaks_of(evidence, snippet_s, decision));
        score += decision.strength[window] * std::log1p(std::max(strength, 0.0F));
    }
    score += decision.strongest_contrast * candidate.contrast.strongest;
    score += decision.dense_contrast * candidate.contrast.dense;
    if (candidate.change == Change::speed &&
        std::abs(candidate.tempo - 1.0F) > decision.unchanged) {
        score += decision.speed_changed;
    }
    score += decision.length * std::log(peaks_of(candidate.evidence[0], snippet_s, decision));
    candidate.strength = score;
    candidate.confidence = 1.0F / (1.0F + std::exp(-score));
    candidate.accepted = is_answer(candidate, decision.accepted, decision);
}

bool is_answer(const Candidate& candidate, float min_confidence,
               const Decision& decision) noexcept {
    return candidate.confidence >= min_confidence &&
           candidate.evidence[0].hits >= decision.min_hits;
}

bool is_certain(const Candidate& candidate, const Decision& decision) noexcept {
    return candidate.accepted &&
           candidate.evidence[0].likelihood + candidate.evidence[1].likelihood >
               decision.certain_likelihood;
}

}  // namespace polymux::song
