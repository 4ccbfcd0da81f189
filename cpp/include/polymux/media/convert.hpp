// Converts any audio or video to MP3, with the same frames as the ffmpeg command line.
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

/// LAME's effort. `ffmpeg` sets nothing, like the ffmpeg program (LAME's quality 3 at CBR). `best`
/// is LAME's quality 4, which in 3.100 sounds better at CBR than 3. `fast` is quality 7.
enum class Preset : std::uint8_t { ffmpeg, best, fast };

/// The reference for a comparison of every audio frame: one encoder for the whole file, or the
/// ffmpeg program.
enum class Verify : std::uint8_t { none, sequential, ffmpeg };

enum class MetadataMode : std::uint8_t { copy, none };

struct ConvertOptions {
    std::optional<int> bitrate_bps = {};  ///< CBR, or the mean with `abr`; 8,000 to 320,000.
    std::optional<double> vbr_quality =
        {};            ///< 0 (best) to below 10. Default: 0 if no bitrate is given.
    bool abr = false;  ///< Average bitrate instead of constant.
    Preset preset = Preset::ffmpeg;
    std::optional<int> sample_rate_hz = {};  ///< One of MPEG's nine; default nearest to input.
    std::optional<int> channels = {};        ///< 1 or 2; default 1 for mono input, else 2.
    std::optional<int> audio_stream = {};  ///< Stream index as in `probe`; default ffmpeg's choice.
    std::optional<double> start_s = {};    ///< Start position, >= 0.
    std::optional<double> end_s = {};      ///< End position, > start_s.
    MetadataMode tags = MetadataMode::copy;   ///< Text, comments and chapters.
    std::optional<Tags> replace_tags = {};    ///< Replace the input's text tags.
    MetadataMode cover = MetadataMode::copy;  ///< The cover image, copied bit for bit.
    std::optional<Cover> replace_cover = {};  ///< Replaces the input's cover image.
    int id3v2_version = 3;                    ///< 3 (ID3v2.3, which every player reads) or 4.
    bool identical_file = false;  ///< Whole file as from `ffmpeg -vn`, with tags; implies `exact`.
    int threads = 0;              ///< Maximum for one file; 0 means all cores.
    /// For ABR and VBR: use one encoder from start to end. Otherwise, a few frames at LAME's upper
    /// bit limit can differ from those of one encoder, which the report counts. No effect at a
    /// constant bitrate, where all frames are the same.
    bool exact = false;
    /// A difference is the error `encoder_failed`. `ffmpeg` needs a file and the program in PATH.
    Verify verify = Verify::none;
    bool strict = false;  ///< Damaged input is an error instead of a warning.
    Limits limits = {};
};

/// Progress of one conversion; times are positions in the input.
struct Progress {
    double position_s = 0;                  ///< Audio encoded so far.
    std::optional<double> duration_s = {};  ///< Expected total; none if unknown.
    std::int64_t bytes_written = 0;
    double elapsed_s = 0;
};

/// Called on the converting thread, at most ten times a second. Return false to stop the conversion
/// with `callback_failed`.
using ProgressCallback = std::function<bool(const Progress&)>;

struct Warning {
    std::string code;  ///< "damaged_packet", "bitrate_adjusted", ...
    std::string message;
    std::optional<double> position_s = {};  ///< Where in the input, in seconds.
    std::int64_t count = 1;                 ///< Occurrences merged into this warning.
};

struct ConvertReport {
    double duration_s = 0;         ///< Audio encoded.
    std::int64_t samples = 0;      ///< Per channel, at the output rate.
    std::int64_t frames = 0;       ///< MP3 audio frames, without the Xing/Info frame.
    std::int64_t bytes = 0;        ///< Size of the output.
    std::int64_t audio_bytes = 0;  ///< Bytes of the audio frames alone.
    int sample_rate_hz = 0;
    int channels = 0;
    std::string mode;       ///< "cbr", "abr", "vbr".
    std::string container;  ///< Container of the input.
    std::string codec;      ///< Codec of the converted stream.
    int audio_stream = 0;
    std::string encoder;  ///< "LAME 3.100".
    double elapsed_s = 0;
    std::int64_t damaged_packets = 0;
    int seams = 0;                   ///< Boundaries between parallel segments.
    int absorbed_segments = 0;       ///< Replaced by frames of the previous segment's encoder.
    std::int64_t bumped_frames = 0;  ///< Made larger than by LAME, for the sake of a later frame.
    /// Encoders started to encode frames again whose content depends on the bit reservoir's level.
    int repairs = 0;
    std::int64_t inexact_frames = 0;  ///< Such frames that may differ from one encoder's.
    /// Every audio frame is certainly that of ffmpeg, with the same libavcodec and LAME. False if
    /// frames are inexact, packets are damaged, samples unusable, or the audio format changes.
    bool identical = true;
    std::string reference = {};  ///< With `verify`: what every frame was equal to.
    std::vector<Warning> warnings;
};

/// Checks options that need no input. One error names every problem.
Result<void> validate(const ConvertOptions& options);

/// Parses "128k", "128000" or "0.128M" to bits per second. Errors name the text and the accepted
/// forms.
Result<int> parse_bitrate(std::string_view text);

/// Converts the whole of `source` into `sink` and commits it. After an error, the sink stays
/// uncommitted; destroying it removes its output. Thread rule: only this call uses source and sink.
Result<ConvertReport> convert_to_mp3(ByteSource& source, ByteSink& sink,
                                     const ConvertOptions& options = {},
                                     const ProgressCallback& on_progress = {},
                                     const CancelToken& token = {});

}  // namespace polymux::media
