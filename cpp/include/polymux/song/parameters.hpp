// The numbers that decide which song a recording is. docs/explanation/song-recognition.md describes
// how they were measured, and how to measure with other music.
#pragma once

#include <array>
#include <cstddef>
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
/// answers counted ten times. docs/explanation/song-recognition.md describes how to fit it to other
/// music.
struct Decision {
    float bias = -5.082F;
    /// Of log(1 + strength) of each window, strength being the likelihood over the root of how
    /// many peaks were there to be found.
    std::array<float, 2> strength = {4.857F, 4.364F};
    /// Of how far the snippet's strongest peaks, so many of each second, and all of them stand out.
    std::size_t strongest_of_second = 12;
    float strongest_contrast = -1.768F;
    float dense_contrast = 2.163F;
    /// Where the snippet is played faster or slower, by more than what is found while looking for
    /// the song as it is.
    float speed_changed = -0.372F;
    float unchanged = 0.0047F;
    /// Of the logarithm of how many peaks were there to be found.
    float length = -1.268F;

    /// A song that lies under a part of the snippet only, or has next to nothing there, is judged
    /// as if it had so many peaks a second: few of them agree by chance somewhere.
    float min_peaks_per_second = 13;

    float accepted = 0.85F;  ///< The least confidence of an answer.
    int min_hits = 6;        ///< With fewer peaks found, it is none.
    /// So much likelihood, of both windows, and no other way of playing is tried.
    float certain_likelihood = 60;
};

/// Which ways of playing a song are tried, and how exactly it is laid over the snippet.
struct SearchParameters {
    /// Steps of speed, tempo and pitch, so many faster and so many slower.
    float step = 0.005F;
    int speed_steps = 11;
    int tempo_steps = 13;
    int pitch_steps = 13;

    /// Places of one song and one way of playing that are kept of what the first window says, and
    /// of how many songs such places are judged by both.
    std::size_t kept_of_one_song = 2;
    std::size_t refined_songs = 6;

    /// Frames that a place is moved by on each side: at first, and when it is fitted exactly. Then
    /// speeds are tried by these parts of a step.
    int moved_frames = 1;
    int refined_frames = 2;
    std::array<float, 3> finer_steps = {0.5F, 0.25F, 0.125F};
};

/// How much a peak says that is found where the song has it: the likelihood ratio against chance.
struct LikelihoodParameters {
    /// That a cell has a peak anyway.
    float min_chance = 0.02F;
    float max_chance = 0.97F;
    /// Share of the song's peaks that the snippet may keep.
    float min_survival = 0.08F;
    float max_survival = 0.92F;
    /// How busy a frequency is, is the mean over so many cells on each side and, so that one that
    /// was never seen is not impossible, of so many frames that are as busy as the mean.
    int smoothed_cells = 2;
    float prior_frames = 6.0F;
    /// Of the mean, for moments.
    float prior_of_moment = 0.05F;
};

/// When two files are the same recording, and with that one group.
struct SameRecordingParameters {
    /// Excerpts of 20 s, about these parts of the recording, of which so many must agree.
    std::uint32_t excerpt_frames = 1'250;
    std::array<std::uint32_t, 3> places_per_cent = {20, 50, 80};
    int min_excerpts = 2;
    /// Of the song's peaks within an excerpt, the shares that must be the other's too. Peaks of
    /// other codecs agree to four fifths, those of another performance to a third.
    float min_survival = 0.45F;
    int min_hits = 60;
    std::size_t max_candidates = 5;  ///< That are looked at, for each excerpt.
};

/// All that decides which songs are named for which sound. What is not here decides nothing of
/// that: how memory is laid out and kept within bounds, in which format files are, and how names
/// are compared (title_match.cpp).
struct Parameters {
    int sample_rate_hz = 8'000;
    int hop_samples = 128;
    float lowest_hz = 100;
    float highest_hz = 3'800;
    int bands = 4;  ///< Spaced evenly on a logarithmic scale.

    /// Of two channels the middle is taken, unless its power lies so many times below that of their
    /// difference (20 dB): then the louder one is. Samples beyond the loudest are taken for
    /// silence.
    double max_side_over_middle = 100;
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
    int baseline_bins = 16;

    /// The first finds candidates and judges them, the second judges them once more.
    std::array<WindowParameters, 2> windows = {
        WindowParameters{.length_samples = 2048},
        WindowParameters{.length_samples = 4096, .stride = 2}};

    /// Pairs of peaks of the first window, which make the keys of the index.
    int pair_fan = 4;  ///< Of a song: each peak with the next so many.
    int pair_min_frames = 2;
    int pair_max_frames = 160;
    int pair_max_bins = 127;

    /// Of a snippet only the beginning is decoded, and of that the loudest part is looked at,
    /// which begins at a multiple of so many samples.
    double max_decoded_s = 600.0;
    double max_query_s = 30.0;
    std::size_t loudest_step_samples = 4'000;
    /// A shorter one, or one of less power (-85 dBFS), is like nothing.
    double min_query_s = 1.0;
    double min_power = 3.16e-9;

    /// Peaks of a snippet whose pairs are looked up, of the first window.
    int query_box_frames = 6;
    int query_box_bins = 12;
    int query_peaks_per_second = 60;
    int query_fan = 12;
    /// Of a number that is to be rounded: so close to the middle of two, both are looked up.
    float query_rounding = 0.35F;

    /// A key with more postings than these tells nothing.
    std::uint32_t max_postings = 4'000;
    /// Votes for one place within `vote_frames` frames that make a candidate, and how many places
    /// of one way of playing are looked at.
    int min_votes = 3;
    int vote_frames = 3;
    int max_candidates = 40;

    /// Frames between two songs on a segment's line of time: more than any snippet has.
    int gap_frames = 2'048;

    SearchParameters search;
    LikelihoodParameters likelihood;
    Decision decision;
    SameRecordingParameters same_recording;

    /// Identifies what decides which peaks and pairs are stored. An index made with others is made
    /// anew; what questions are asked and decided by may change at any time, and so may what makes
    /// groups: those that were made stay.
    [[nodiscard]] std::uint64_t hash() const noexcept;
};

/// Bits of a pair's key: the first peak's bin, the difference of bins, half the frames between.
inline constexpr int key_bits = 25;

}  // namespace polymux::song
