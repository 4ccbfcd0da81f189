// Any audio or video to MP3, with the frames of the ffmpeg command line.
//
//     auto source = polymux::media::open_file("talk.mp4");
//     auto sink = polymux::media::create_file_sink("talk.mp3");
//     ConvertOptions options;
//     options.bitrate_bps = 128'000;
//     auto report = polymux::media::convert_to_mp3(**source, **sink, options);
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/cancel.hpp"
#include "polymux/media/info.hpp"
#include "polymux/media/limits.hpp"
#include "polymux/media/sink.hpp"
#include "polymux/media/source.hpp"
#include "polymux/result.hpp"

namespace polymux::media {

/// How hard LAME works. `ffmpeg` sets nothing, as the ffmpeg program does (LAME's quality 3 at
/// CBR); `best` is LAME's quality 4, which in 3.100 sounds better at CBR than 3; `fast` is
/// quality 7.
enum class Preset : std::uint8_t { ffmpeg, best, fast };

enum class Carry : std::uint8_t { copy, none };

/// How far seams of parallel encoding are checked beyond the 24 frames that always must agree:
/// the encoder before the seam goes on through the whole next segment and every frame is compared.
/// It costs that encoder's time; what it finds is in the report.
enum class Verify : std::uint8_t { none, first_seam, all };

struct ConvertOptions {
    std::optional<int> bitrate_bps = {};  ///< CBR, or the mean with `abr`; 8,000 to 320,000.
    std::optional<double> vbr_quality =
        {};            ///< 0 (best) to below 10. Default: 0 without a bitrate.
    bool abr = false;  ///< Average bitrate instead of constant.
    Preset preset = Preset::ffmpeg;
    std::optional<int> sample_rate_hz = {};  ///< One of MPEG's nine; default nearest to the input.
    std::optional<int> channels = {};        ///< 1 or 2; default 1 for mono input, else 2.
    std::optional<int> audio_stream =
        {};  ///< Stream index as `probe` numbers; default ffmpeg's choice.
    std::optional<double> start_s = {};       ///< From this position, >= 0.
    std::optional<double> end_s = {};         ///< Up to this position, > start_s.
    Carry tags = Carry::copy;                 ///< Text, comments and chapters.
    std::optional<Tags> replace_tags = {};    ///< Instead of the input's text tags.
    Carry cover = Carry::copy;                ///< The picture, bit for bit.
    std::optional<Cover> replace_cover = {};  ///< Instead of the input's picture.
    int id3v2_version = 3;                    ///< 3 (ID3v2.3, read by everything) or 4.
    bool identical_file = false;  ///< Whole file as `ffmpeg -vn` writes it, tags included; `exact`.
    int threads = 0;              ///< Upper bound for one file; 0 is all cores.
    /// At ABR and VBR: one encoder from beginning to end, so that every frame is ffmpeg's. Without
    /// it that is so but for rare frames at LAME's upper bit limit, fewer than one in a thousand.
    /// At a constant bitrate it changes nothing; there one thread makes every frame ffmpeg's.
    bool exact = false;
    Verify verify = Verify::none;
    bool strict = false;  ///< Damaged input is an error instead of a warning.
    Limits limits = {};
};

/// Progress of one conversion; times are positions in the input.
struct Progress {
    double position_s = 0;                  ///< Audio encoded so far.
    std::optional<double> duration_s = {};  ///< Expected total; none when the container is silent.
    std::int64_t bytes_written = 0;
    double elapsed_s = 0;
};

/// Called on the converting thread, at most ten times a second. Return false to stop the
/// conversion with `callback_failed`.
using ProgressCallback = std::function<bool(const Progress&)>;

struct Warning {
    std::string code;  ///< "damaged_packet", "bitrate_adjusted", ...
    std::string message;
    std::optional<double> position_s = {};  ///< Where in the input, in seconds.
    std::int64_t count = 1;                 ///< Repetitions folded into this one.
};

struct ConvertReport {
    double duration_s = 0;         ///< Audio encoded.
    std::int64_t samples = 0;      ///< Per channel, at the output rate.
    std::int64_t frames = 0;       ///< MP3 audio frames, without the Xing/Info frame.
    std::int64_t bytes = 0;        ///< Size of the output.
    std::int64_t audio_bytes = 0;  ///< Of the audio frames alone.
    int sample_rate_hz = 0;
    int channels = 0;
    std::string mode;       ///< "cbr", "abr", "vbr".
    std::string container;  ///< Of the input.
    std::string codec;      ///< Of the stream that was converted.
    int audio_stream = 0;
    std::string encoder;  ///< "LAME 3.100".
    double elapsed_s = 0;
    std::int64_t damaged_packets = 0;
    int seams = 0;                   ///< Places where parallel segments were joined.
    int absorbed_segments = 0;       ///< Encoded, but taken from the encoder before instead.
    std::int64_t bumped_frames = 0;  ///< Made larger than LAME would, for a later frame's sake.
    /// Encoders begun to code frames anew whose content depends on the bit reservoir's level.
    int repairs = 0;
    std::int64_t inexact_frames = 0;   ///< Such frames that may differ from one encoder's.
    std::int64_t parted_frames = 0;    ///< That `verify` found to differ behind an agreement.
    bool sequential_fallback = false;  ///< This LAME is not known well enough to join segments.
    std::vector<Warning> warnings;
};

/// Checks options that need no input. Every problem of the options is named in one error.
Result<void> validate(const ConvertOptions& options);

/// "128k", "128000", "0.128M": bits per second. Errors name the text and the accepted forms.
Result<int> parse_bitrate(std::string_view text);

/// Converts the whole of `source` into `sink` and commits it. On any error the sink is left
/// uncommitted and disappears with its owner. Thread rule: source and sink belong to this call.
Result<ConvertReport> convert_to_mp3(ByteSource& source, ByteSink& sink,
                                     const ConvertOptions& options = {},
                                     const ProgressCallback& on_progress = {},
                                     const CancelToken& token = {});

}  // namespace polymux::media
