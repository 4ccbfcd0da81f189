// Identifies the song of a snippet in an index, or reports that there is no match.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "polymux/cancel.hpp"
#include "polymux/song/parameters.hpp"
#include "polymux/song/peaks.hpp"
#include "polymux/song/query.hpp"
#include "polymux/song/song_set.hpp"

namespace polymux::song {

/// How a recording may be changed and still match.
enum class Change : std::uint8_t {
    speed,  ///< Nothing, or speed: tempo and pitch together, as on a turntable.
    tempo,  ///< The tempo alone.
    pitch,  ///< The pitch alone.
};

/// Evidence from one window for a song's peaks in the snippet.
struct WindowEvidence {
    float likelihood = 0;  ///< Natural logarithm of the likelihood ratio against chance.
    float survival = 0;    ///< Likeliest share of the song's peaks in the snippet.
    int peaks = 0;         ///< Peaks of the song within the snippet.
    int hits = 0;
};

/// How clean the snippet is, whatever its song: log2 of how far peaks stand out.
struct Contrast {
    float strongest = 0;  ///< Mean of the 12 strongest peaks of each second.
    float dense = 0;      ///< Mean of all peaks.
};

/// A possible match for the snippet.
struct Candidate {
    std::int64_t song = 0;
    double offset_s = 0;  ///< Snippet's start in the recording; may be negative.
    float tempo = 1;      ///< 1.02: the snippet runs 2 % faster than the song.
    float pitch = 1;      ///< 1.02: its tones are 2 % higher.
    Change change = Change::speed;
    int votes = 0;
    std::array<WindowEvidence, 2> evidence;
    Contrast contrast;
    float strength = 0;     ///< Input of the decision.
    float confidence = 0;   ///< 0 to 1, as measured: docs/explanation/song-recognition.md.
    bool accepted = false;  ///< The song matches and is not only similar.
};

/// Returns the best candidates, one for each song, best first. The first is the answer if it is
/// accepted. At most 12: the next song needs a place even if the index has copies of one song.
/// Skips songs for which `excluded` returns true. Empty if the token was set. Thread-safe.
///
/// Pairs of peaks give candidates (Wang 2003). A likelihood ratio then scores them; it accounts for
/// the frequencies and moments of the snippet that are busy anyway:
/// docs/explanation/song-recognition.md.
[[nodiscard]] std::vector<Candidate> find_songs(const SongSnapshot& songs, const Query& query,
                                                const Parameters& parameters,
                                                const std::function<bool(std::int64_t)>& excluded,
                                                const CancelToken& token = {});

/// Whether the candidate is accepted with at least `min_confidence`. `decision.accepted` is the
/// default threshold.
[[nodiscard]] bool is_answer(const Candidate& candidate, float min_confidence,
                             const Decision& decision) noexcept;

/// Like `find_songs`, for a snippet with the original speed, tempo and pitch.
[[nodiscard]] std::vector<Candidate> find_unchanged(const SongSnapshot& songs, const Query& query,
                                                    const Parameters& parameters);

/// Returns the songs that are the same recording as this one: another file, another codec, a
/// remaster, most of an edit. Compares three excerpts of its peaks. Another performance does not
/// match.
[[nodiscard]] std::vector<std::int64_t> find_same_recordings(const SongSnapshot& songs,
                                                             const Fingerprint& fingerprint,
                                                             const Parameters& parameters);

}  // namespace polymux::song
