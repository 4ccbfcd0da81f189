#include "polymux/song/matcher.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "song/contrast.hpp"
#include "song/decision.hpp"
#include "song/verifier.hpp"
#include "song/votes.hpp"

namespace polymux::song {

namespace {

/// Frames around the snippet whose peaks are loaded too: a place moves by less than this.
constexpr float around_frames = 8.0F;

/// A place in a song, and its score by the first window.
struct Lead {
    const Segment* segment = nullptr;
    std::uint32_t track = 0;
    std::int64_t song = 0;
    Alignment alignment;
    Change change = Change::speed;
    int votes = 0;
    float strength = 0;
};

/// One search, on one thread.
class Search {
public:
    Search(const SongSnapshot& songs, const Query& query, const Parameters& parameters,
           const std::function<bool(std::int64_t)>& excluded)
        : songs_(songs),
          query_(query),
          parameters_(parameters),
          excluded_(excluded),
          votes_(query, parameters),
          search_(parameters.search),
          contrast_(contrast_of(query, parameters)),
          verifiers_{Verifier(query, parameters, 0), Verifier(query, parameters, 1)} {}

    /// Only the unchanged songs.
    std::vector<Candidate> run_unchanged() {
        try_speed(1.0F, true);
        return refined();
    }

    std::vector<Candidate> run(const CancelToken& token) {
        std::vector<Candidate> found = run_unchanged();
        if (!found.empty() && is_certain(found.front(), parameters_.decision)) {
            return found;
        }
        for (const std::shared_ptr<const SongPart>& part : songs_.parts) {
            votes_.look_up(part->segment, 1.0F);
            for (int step = 1; step <= search_.tempo_steps; ++step) {
                for (const int sign : {-1, 1}) {
                    const float factor = factor_of(sign * step);
                    collect(*part, {.time_factor = factor}, Change::tempo);
                }
            }
            if (token.cancelled()) {
                return {};
            }
        }
        for (int step = 1; step <= search_.pitch_steps; ++step) {
            for (const int sign : {-1, 1}) {
                if (token.cancelled()) {
                    return {};
                }
                try_speed(factor_of(sign * step), step <= search_.speed_steps);
            }
        }
        return refined();
    }

private:
    [[nodiscard]] float factor_of(int steps) const noexcept {
        return 1.0F + static_cast<float>(steps) * search_.step;
    }

    /// Looks up the pairs as if played faster by that factor. Counts candidates for the speed
    /// itself and, except for the unchanged song, for the pitch alone: pairs of nearby peaks have
    /// the same keys either way.
    void try_speed(float factor, bool is_speed) {
        for (const std::shared_ptr<const SongPart>& part : songs_.parts) {
            votes_.look_up(part->segment, factor);
            if (is_speed) {
                collect(*part, {.time_factor = factor, .frequency_factor = factor}, Change::speed);
            }
            if (factor != 1.0F) {
                collect(*part, {.frequency_factor = factor}, Change::pitch);
            }
        }
    }

    void collect(const SongPart& part, const Alignment& played, Change change) {
        const Segment& segment = part.segment;
        for (const Place& place : votes_.count(played.time_factor)) {
            if (place.frame < Votes::bias) {
                continue;
            }
            const std::optional<TrackPlace> at = segment.track_at(place.frame - Votes::bias);
            if (!at) {
                continue;
            }
            Lead lead{.segment = &segment,
                      .track = at->track,
                      .song = segment.track(at->track).song,
                      .alignment = played,
                      .change = change,
                      .votes = place.votes,
                      .strength = 0};
            if (part.is_removed(lead.song) || (excluded_ && excluded_(lead.song))) {
                continue;
            }
            lead.alignment.offset = static_cast<float>(at->frame);
            fetch(lead, 0);
            judge_coarsely(lead);
            keep(lead);
        }
    }

    /// Loads the song's peaks within the snippet and a little around it.
    void fetch(const Lead& lead, int window) {
        const float frames = static_cast<float>(query_.frames) * lead.alignment.time_factor;
        const float first = std::max(lead.alignment.offset - around_frames, 0.0F);
        const float end = std::max(lead.alignment.offset + frames + around_frames, 0.0F);
        std::vector<PackedPeak>& peaks = peaks_[static_cast<std::size_t>(window)];
        peaks.clear();
        lead.segment->peaks(lead.track, window, static_cast<std::uint32_t>(first),
                            static_cast<std::uint32_t>(end),
                            [&peaks](PackedPeak peak) { peaks.push_back(peak); });
    }

    void judge_coarsely(Lead& lead) const {
        const float offset = lead.alignment.offset;
        for (int shift = -search_.moved_frames; shift <= search_.moved_frames; ++shift) {
            Alignment moved = lead.alignment;
            moved.offset = offset + static_cast<float>(shift);
            const float strength = strength_of(verifiers_[0].judge(peaks_[0], moved));
            if (strength > lead.strength) {
                lead.strength = strength;
                lead.alignment.offset = moved.offset;
            }
        }
    }

    void keep(const Lead& lead) {
        if (lead.strength <= 0.0F) {
            return;
        }
        Lead* weakest = nullptr;
        std::size_t of_same = 0;
        for (Lead& other : leads_) {
            if (other.song == lead.song && other.change == lead.change) {
                ++of_same;
                if (weakest == nullptr || other.strength < weakest->strength) {
                    weakest = &other;
                }
            }
        }
        if (of_same < search_.kept_of_one_song) {
            leads_.push_back(lead);
        } else if (weakest->strength < lead.strength) {
            *weakest = lead;
        }
    }

    std::vector<Candidate> refined() {
        std::sort(leads_.begin(), leads_.end(),
                  [](const Lead& one, const Lead& other) { return one.strength > other.strength; });
        std::vector<Candidate> found;
        const std::size_t count =
            std::min(leads_.size(), search_.refined_songs * search_.kept_of_one_song);
        for (const Lead& lead : std::span(leads_).first(count)) {
            const Candidate candidate = refine(lead);
            const auto same = std::find_if(
                found.begin(), found.end(),
                [&candidate](const Candidate& other) { return other.song == candidate.song; });
            if (same == found.end()) {
                found.push_back(candidate);
            } else if (same->strength < candidate.strength) {
                *same = candidate;
            }
        }
        std::sort(found.begin(), found.end(), [](const Candidate& one, const Candidate& other) {
            return one.strength > other.strength;
        });
        return found;
    }

    /// A lead at its best position.
    struct Fit {
        Alignment alignment;
        std::array<WindowEvidence, 2> evidence;
        float likelihood = -1;
    };

    void fit_at(const Alignment& alignment, Fit& fit) const {
        const std::array<WindowEvidence, 2> evidence = {verifiers_[0].judge(peaks_[0], alignment),
                                                        verifiers_[1].judge(peaks_[1], alignment)};
        const float sum = evidence[0].likelihood + evidence[1].likelihood;
        if (sum > fit.likelihood) {
            fit = {.alignment = alignment, .evidence = evidence, .likelihood = sum};
        }
    }

    /// Tries earlier and later frames, then ever finer steps of speed, because the second window
    /// resolves frequencies within a step. The speed changes around the snippet's middle.
    Candidate refine(const Lead& lead) {
        fetch(lead, 0);
        fetch(lead, 1);
        Fit fit;
        for (int shift = -search_.refined_frames; shift <= search_.refined_frames; ++shift) {
            Alignment at = lead.alignment;
            at.offset += static_cast<float>(shift);
            fit_at(at, fit);
        }
        const float middle = static_cast<float>(query_.frames) / 2.0F;
        for (const float part : search_.finer_steps) {
            const float step = search_.step * part;
            const Alignment from = fit.alignment;
            for (const float scale : {1.0F - step, 1.0F + step}) {
                Alignment at = from;
                at.time_factor *= lead.change == Change::pitch ? 1.0F : scale;
                at.frequency_factor *= lead.change == Change::tempo ? 1.0F : scale;
                at.offset += middle * (from.time_factor - at.time_factor);
                fit_at(at, fit);
                at.offset += 1.0F;
                fit_at(at, fit);
                at.offset -= 2.0F;
                fit_at(at, fit);
            }
        }
        return candidate_of(lead, fit.alignment, fit.evidence);
    }

    Candidate candidate_of(const Lead& lead, const Alignment& at,
                           const std::array<WindowEvidence, 2>& evidence) const {
        const TrackRow row = lead.segment->track(lead.track);
        const double frame_s =
            static_cast<double>(parameters_.hop_samples) / parameters_.sample_rate_hz;
        Candidate candidate{
            .song = lead.song,
            .offset_s =
                (static_cast<double>(row.first_frame) + static_cast<double>(at.offset)) * frame_s,
            .tempo = at.time_factor,
            .pitch = at.frequency_factor,
            .change = lead.change,
            .votes = lead.votes,
            .evidence = evidence,
            .contrast = contrast_,
            .strength = 0,
            .confidence = 0,
            .accepted = false};
        decide(candidate, static_cast<double>(query_.frames) * frame_s, parameters_.decision);
        return candidate;
    }

    const SongSnapshot& songs_;
    const Query& query_;
    const Parameters& parameters_;
    const std::function<bool(std::int64_t)>& excluded_;
    Votes votes_;
    const SearchParameters& search_;
    Contrast contrast_;
    std::array<Verifier, 2> verifiers_;
    std::array<std::vector<PackedPeak>, 2> peaks_;
    std::vector<Lead> leads_;
};

}  // namespace

std::vector<Candidate> find_songs(const SongSnapshot& songs, const Query& query,
                                  const Parameters& parameters,
                                  const std::function<bool(std::int64_t)>& excluded,
                                  const CancelToken& token) {
    if (query.peaks.empty()) {
        return {};
    }
    return Search(songs, query, parameters, excluded).run(token);
}

std::vector<Candidate> find_unchanged(const SongSnapshot& songs, const Query& query,
                                      const Parameters& parameters) {
    if (query.peaks.empty()) {
        return {};
    }
    std::vector<Candidate> found = Search(songs, query, parameters, {}).run_unchanged();
    found.resize(std::min(found.size(), parameters.same_recording.max_candidates));
    return found;
}

}  // namespace polymux::song
