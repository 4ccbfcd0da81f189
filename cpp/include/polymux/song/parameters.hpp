// Parameters of song recognition. docs/explanation/song-recognition.md describes how they were
// measured, and how to measure them with your music.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace polymux::song {

/// One window of the short-time Fourier transform, and which of its peaks are kept.
struct WindowParameters {
    int length_samples = 0;
    /// Both windows have a frame every `hop_samples`. For songs, the longer window may compute only
    /// every `stride`-th frame.
    int stride = 1;

    /// Peaks of a song: the maximum within these many computed frames and bins on each side. The
    /// most prominent ones of each second in each of `bands` bands are kept.
    int song_box_frames = 10;
    int song_box_bins = 14;
    int song_peaks_per_band = 5;

    /// All peaks of a snippet that can match a song's peak: dense.
    int dense_box_frames = 2;
    int dense_box_bins = 2;
    int dense_peaks_per_second = 250;

    /// Maximum distance of a snippet's peak, on each side.
    int tolerance_frames = 1;
    float tolerance_bins = 0.6F;
};

/// Parameters of the decision about a candidate: a logistic regression, fitted to generated music
/// with a weight of ten for wrong answers. docs/explanation/song-recognition.md describes how to
/// fit it to your music.
struct Decision {
    float bias = -5.082F;
    /// Weights of log(1 + strength) of each window. Strength is the likelihood over the root of the
    /// number of expected peaks.
    std::array<float, 2> strength = {4.857F, 4.364F};
    /// Weights of the contrast of the snippet's strongest peaks (this many of each second) and of
    /// all its peaks.
    std::size_t strongest_of_second = 12;
    float strongest_contrast = -1.768F;
    float dense_contrast = 2.163F;
    /// Weight for a changed speed, if it exceeds the changes that the search for the unchanged song
    /// covers.
    float speed_changed = -0.372F;
    float unchanged = 0.0047F;
    /// Weight of the logarithm of the number of expected peaks.
    float length = -1.268F;

    /// If a song covers only a part of the snippet, or has almost no peaks there, it is scored as
    /// if it had this many peaks per second, because a few peaks agree by chance somewhere.
    float min_peaks_per_second = 13;

    float accepted = 0.85F;  ///< Minimum confidence of an answer.
    int min_hits = 6;        ///< Minimum number of peaks found for an answer.
    /// At this likelihood of both windows, the search skips other speeds, tempos and pitches.
    float certain_likelihood = 60;
};

/// Which changes of a song to try, and how exactly to align it with the snippet.
struct SearchParameters {
    /// Step size for speed, tempo and pitch, with this many steps up and down.
    float step = 0.005F;
    int speed_steps = 11;
    int tempo_steps = 13;
    int pitch_steps = 13;

    /// Number of places kept by the first window for one song and one change, and number of songs
    /// whose places both windows score.
    std::size_t kept_of_one_song = 2;
    std::size_t refined_songs = 6;

    /// Frames by which a place is moved on each side, in the first pass and in the exact fit. The
    /// exact fit also tries speeds in these fractions of a step.
    int moved_frames = 1;
    int refined_frames = 2;
    std::array<float, 3> finer_steps = {0.5F, 0.25F, 0.125F};
};

/// How much a found peak of the song counts: the likelihood ratio against chance.
struct LikelihoodParameters {
    /// Minimum probability that a cell has a peak anyway.
    float min_chance = 0.02F;
    float max_chance = 0.97F;
    /// Range of the share of the song's peaks that the snippet may keep.
    float min_survival = 0.08F;
    float max_survival = 0.92F;
    /// Frequency statistics are a mean over this many cells on each side. Adding this many average
    /// frames keeps a frequency without peaks from being impossible.
    int smoothed_cells = 2;
    float prior_frames = 6.0F;
    /// The same prior for moments, as a share of the mean.
    float prior_of_moment = 0.05F;
};

/// When two files are the same recording and belong to one group.
struct SameRecordingParameters {
    /// Excerpts of 20 s around these positions of the recording, and how many must agree.
    std::uint32_t excerpt_frames = 1'250;
    std::array<std::uint32_t, 3> places_per_cent = {20, 50, 80};
    int min_excerpts = 2;
    /// Minimum shares of the song's peaks in an excerpt that must also be in the other song. Other
    /// codecs keep about four fifths of the peaks; another performance shares a third.
    float min_survival = 0.45F;
    int min_hits = 60;
    std::size_t max_candidates = 5;  ///< Candidates checked for each excerpt.
};

/// All parameters that decide which songs match an audio snippet. Memory layout and limits, file
/// formats and title comparison (title_match.cpp) are elsewhere, because they do not affect the
/// result.
struct Parameters {
    int sample_rate_hz = 8'000;
    int hop_samples = 128;
    float lowest_hz = 100;
    float highest_hz = 3'800;
    int bands = 4;  ///< Spaced evenly on a logarithmic scale.

    /// The middle of two channels is used. If its power is lower than the power of their
    /// difference by more than this factor (20 dB), the louder channel is used. Samples above the
    /// maximum count as silence.
    double max_side_over_middle = 100;
    float loudest_sample = 1e6F;

    /// Power added to each cell, which leaves digital silence without peaks. And log2 of the power
    /// below which there is only rounding noise (-117 dB of a full-scale sine).
    float silence_power = 1e-12F;
    float lowest_level = -39;
    /// Peaks further below the loudest peak of their slice are dropped (log2 of the power ratio,
    /// 66 dB). There, a file has only rounding noise, and a copy in another codec has none of it.
    float level_range = 22;

    /// Peaks are selected in slices of this many frames, about a second. Prominence is relative to
    /// the mean at the same frequency. For a song, that mean covers this many frames (about a
    /// minute) and this many bins on each side.
    int slice_frames = 64;
    int usual_frames = 3'840;
    int baseline_bins = 16;

    /// The first window finds and scores candidates, the second scores them again.
    std::array<WindowParameters, 2> windows = {
        WindowParameters{.length_samples = 2048},
        WindowParameters{.length_samples = 4096, .stride = 2}};

    /// Pairs of peaks of the first window, which form the keys of the index.
    int pair_fan = 4;  ///< Songs: each peak pairs with this many following ones.
    int pair_min_frames = 2;
    int pair_max_frames = 160;
    int pair_max_bins = 127;

    /// Only the beginning of a snippet is decoded, and only its loudest part is used. That part
    /// begins at a multiple of this many samples.
    double max_decoded_s = 600.0;
    double max_query_s = 30.0;
    std::size_t loudest_step_samples = 4'000;
    /// A shorter or quieter snippet (-85 dBFS) has no match.
    double min_query_s = 1.0;
    double min_power = 3.16e-9;

    /// Peaks of a snippet in the first window whose pairs are looked up.
    int query_box_frames = 6;
    int query_box_bins = 12;
    int query_peaks_per_second = 60;
    int query_fan = 12;
    /// If a value is this close to the middle between two integers, both are looked up.
    float query_rounding = 0.35F;

    /// A key with more postings than this is ignored.
    std::uint32_t max_postings = 4'000;
    /// Minimum votes for one place within `vote_frames` frames to become a candidate, and the
    /// maximum number of places per change of speed, tempo or pitch.
    int min_votes = 3;
    int vote_frames = 3;
    int max_candidates = 40;

    /// Frames between two songs on a segment's timeline: longer than any snippet.
    int gap_frames = 2'048;

    SearchParameters search;
    LikelihoodParameters likelihood;
    Decision decision;
    SameRecordingParameters same_recording;

    /// Hash of the parameters that decide which peaks and pairs are stored. An index with other
    /// values is rebuilt. Parameters of queries and decisions may change at any time. Parameters of
    /// grouping may change too; existing groups stay.
    [[nodiscard]] std::uint64_t hash() const noexcept;
};

/// Bits of a pair's key: the first peak's bin, the difference of bins, half the frames between.
inline constexpr int key_bits = 25;

}  // namespace polymux::song
