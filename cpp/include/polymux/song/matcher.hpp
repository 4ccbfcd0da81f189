// Which song of an index a snippet is of, or that it is of none.
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

/// How a song may be changed and still be that song.
enum class Change : std::uint8_t {
    speed,  ///< Nothing, or speed: tempo and pitch alike, as a turntable does.
    tempo,  ///< The tempo alone.
    pitch,  ///< The pitch alone.
};

/// What one window found of a song's peaks in the snippet.
struct WindowEvidence {
    float likelihood = 0;  ///< Natural logarithm of how much likelier it is than chance.
    float survival = 0;    ///< Share of the song's peaks that the snippet keeps, where likeliest.
    int peaks = 0;         ///< Of the song, within the snippet.
    int hits = 0;
};

/// How clean the snippet is, whatever it is of: log2 of how far peaks stand out.
struct Contrast {
    float strongest = 0;  ///< Mean of the 12 strongest of each second.
    float dense = 0;      ///< Mean of all.
};

/// A song that the snippet may be of.
struct Candidate {
    std::int64_t song = 0;
    double offset_s = 0;  ///< Where in the recording the snippet begins; negative before it.
    float tempo = 1;      ///< 1.02: the snippet runs 2 % faster than the song.
    float pitch = 1;      ///< 1.02: its tones are 2 % higher.
    Change change = Change::speed;
    int votes = 0;
    std::array<WindowEvidence, 2> evidence;
    Contrast contrast;
    float strength = 0;     ///< What the decision is made by.
    float confidence = 0;   ///< 0 to 1, by what was measured: docs/explanation/song-recognition.md.
    bool accepted = false;  ///< It is the song, and not only like it.
};

/// The best candidates, one for each song, best first; the first is the answer if it is accepted.
/// At most 12: copies of one song shall leave a place for the next one. Songs for which `excluded`
/// says so are left out. Empty where the token was set. Thread-safe.
///
/// Candidates by pairs of peaks (Wang 2003), judged by a likelihood ratio that knows which
/// frequencies and moments of the snippet are busy anyway: docs/explanation/song-recognition.md.
[[nodiscard]] std::vector<Candidate> find_songs(const SongSnapshot& songs, const Query& query,
                                                const Parameters& parameters,
                                                const std::function<bool(std::int64_t)>& excluded,
                                                const CancelToken& token = {});

/// Whether the candidate is the song and not only like it, for whoever wants to be so sure:
/// `decision.accepted` is what others are content with.
[[nodiscard]] bool is_answer(const Candidate& candidate, float min_confidence,
                             const Decision& decision) noexcept;

/// The best candidates of a snippet that was not played faster, slower, higher or lower.
[[nodiscard]] std::vector<Candidate> find_unchanged(const SongSnapshot& songs, const Query& query,
                                                    const Parameters& parameters);

/// Songs that are the same recording as this one: another file, another codec, a remaster, most of
/// an edit. Judged by three excerpts of its peaks; another performance does not count.
[[nodiscard]] std::vector<std::int64_t> find_same_recordings(const SongSnapshot& songs,
                                                             const Fingerprint& fingerprint,
                                                             const Parameters& parameters);

}  // namespace polymux::song
