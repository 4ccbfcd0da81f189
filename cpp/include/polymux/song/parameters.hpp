// The numbers that decide how songs are told apart. Measured: docs/song.md says how, and how to
// measure again with music of one's own.
#pragma once

#include <array>
#include <cstdint>

namespace polymux::song {

/// One window of the short-time Fourier transform, and which of its peaks are kept.
struct WindowParameters {
    int length_samples = 0;
    /// Both windows have a frame every `hop_samples`; of songs the longer one may compute only each
    /// `stride`-th of them.
    int stride = 1;

    /// Peaks of a song: the largest within these many computed frames and bins on each side, and of
    /// those the most prominent ones of each second in each of `bands` bands.
    int song_box_frames = 10;
    int song_box_bins = 14;
    int song_peaks_per_band = 5;

    /// Every peak of a snippet that a song's peak may be found at: dense.
    int dense_box_frames = 2;
    int dense_box_bins = 2;
    int dense_peaks_per_second = 250;

    /// How far off a snippet's peak may lie, on each side.
    int tolerance_frames = 1;
    float tolerance_bins = 0.6F;
};

/// How a candidate is decided upon: a logistic regression, fitted to generated music of which wrong
/// answers counted ten times. docs/song.md tells how to fit it to music of one's own.
struct Decision {
    float bias = -5.082F;
    /// Of log(1 + strength) of each window, strength being the likelihood over the root of how
    /// many peaks were there to be found.
    std::array<float, 2> strength = {4.857F, 4.364F};
    /// Of how far the snippet's strongest peaks, and all of them, stand out.
    float strongest_contrast = -1.768F;
    float dense_contrast = 2.163F;
    /// Where the snippet is played faster or slower.
    float speed_changed = -0.372F;
    /// Of the logarithm of how many peaks were there to be found.
    float length = -1.268F;

    /// A song that lies under a part of the snippet only, or has next to nothing there, is judged
    /// as if it had so many peaks a second: few of them agree by chance somewhere.
    float least_peaks_per_second = 13;

    float accepted = 0.85F;  ///< The least confidence of an answer.
    int least_hits = 6;      ///< With fewer peaks found, it is none.
    /// So much likelihood, of both windows, and no other way of playing is tried.
    float certain_likelihood = 60;
};

struct Parameters {
    int sample_rate_hz = 8'000;
    int hop_samples = 128;
    float lowest_hz = 100;
    float highest_hz = 3'800;
    int bands = 4;  ///< Spaced evenly on a logarithmic scale.

    /// Of two channels the middle is taken, unless its power lies so many times below that of their
    /// difference (20 dB): then the louder one is. Samples beyond the loudest are taken for
    /// silence.
    double most_side_over_middle = 100;
    float loudest_sample = 1e6F;

    /// Power that is added to each cell: digital silence has no peaks. And log2 of the power below
    /// which there is nothing but rounding (-117 dB of a full-scale sine).
    float silence_power = 1e-12F;
    float lowest_level = -39;

    /// Peaks are chosen among those of so many frames, about a second. They stand out of what is
    /// usual at their frequency: of a song that is the mean over so many frames, about a minute,
    /// and over so many bins on each side.
    int slice_frames = 64;
    int usual_frames = 3'840;
    int usual_bins = 16;

    /// The first finds candidates and judges them, the second judges them once more.
    std::array<WindowParameters, 2> windows = {
        WindowParameters{.length_samples = 2048},
        WindowParameters{.length_samples = 4096, .stride = 2}};

    /// Pairs of peaks of the first window, which make the keys of the index.
    int pair_fan = 4;  ///< Of a song: each peak with the next so many.
    int pair_least_frames = 2;
    int pair_most_frames = 160;
    int pair_most_bins = 127;

    /// Peaks of a snippet whose pairs are looked up, of the first window.
    int query_box_frames = 6;
    int query_box_bins = 12;
    int query_peaks_per_second = 60;
    int query_fan = 12;
    /// Of a number that is to be rounded: so close to the middle of two, both are looked up.
    float query_rounding = 0.35F;

    /// A key with more postings than these tells nothing.
    std::uint32_t most_postings = 4'000;
    /// Votes for one place within `vote_frames` frames that make a candidate, and how many places
    /// of one way of playing are looked at.
    int least_votes = 3;
    int vote_frames = 3;
    int most_candidates = 40;

    /// Frames between two songs on a segment's line of time: more than any snippet has.
    int gap_frames = 2'048;

    Decision decision;

    /// Identifies what decides which peaks and pairs are stored. An index made with others is made
    /// anew; what only a query is made by may change at any time.
    [[nodiscard]] std::uint64_t hash() const noexcept;
};

/// Bits of a pair's key: the first peak's bin, the difference of bins, half the frames between.
inline constexpr int key_bits = 25;

}  // namespace polymux::song
