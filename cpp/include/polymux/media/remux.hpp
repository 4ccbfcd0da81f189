// Copies video and audio streams into one new file, without decoding or encoding.
//
//     auto video = polymux::media::open_file("video.m4s");
//     auto audio = polymux::media::open_file("audio.m4s");
//     auto sink = polymux::media::create_file_sink("talk.mp4");
//     const std::array<polymux::media::ByteSource*, 2> sources = {video->get(), audio->get()};
//     auto report = polymux::media::remux(sources, **sink);
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "polymux/cancel.hpp"
#include "polymux/media/convert.hpp"
#include "polymux/media/limits.hpp"
#include "polymux/media/sink.hpp"
#include "polymux/media/source.hpp"
#include "polymux/result.hpp"

namespace polymux::media {

/// `automatic` is WebM for VP8, VP9 and AV1 with Opus or Vorbis, otherwise MP4 if it supports the
/// codecs, otherwise Matroska.
enum class RemuxContainer : std::uint8_t { automatic, mp4, matroska, webm };

struct RemuxOptions {
    RemuxContainer container = RemuxContainer::automatic;
    /// `duration_s` limits the length of the output, `sample_rate_hz` and `channels` its audio.
    Limits limits = {};
};

struct RemuxedStream {
    int input = 0;             ///< Number of the source, from 0.
    int index = 0;             ///< Number of the stream in the source, as in `probe`.
    std::string type;          ///< "video" or "audio".
    std::string codec;         ///< FFmpeg's short name, "h264".
    std::int64_t packets = 0;  ///< Written to the output.
};

struct RemuxReport {
    std::string container;     ///< "mp4", "matroska" or "webm".
    std::string content_type;  ///< "video/mp4", "audio/webm", ...
    std::string extension;     ///< Without a dot: "mp4", "m4a", "mkv", "mka", "webm", "weba".
    double duration_s = 0;     ///< From 0 to the end of the last packet.
    std::int64_t bytes = 0;    ///< Size of the output.
    std::vector<RemuxedStream> streams;  ///< In the output's order.
    double elapsed_s = 0;
    std::vector<Warning> warnings;  ///< Damage in the input, repaired timestamps.
};

/// Writes one file and commits it. The file has the best video of the first source with video, and
/// the best audio of the last source with audio. It can be played while it is loaded. Drops
/// subtitles, data and images; keeps tags, chapters, language, rotation and colors.
///
/// Times begin at 0. Two sources of one kind (two MPEG-TS, two MP4) that begin within ten seconds
/// of each other count as sharing one clock, which keeps audio in sync with video. Other sources
/// each begin at 0. If timestamps of a source jump, the jump is removed.
///
/// `sources` has one or two sources, which only this call uses. `sink` must support patching, and
/// for MP4 also reading back. After an error the sink stays uncommitted; destroying it removes its
/// output. Errors: those of `probe`; `no_audio` if there is neither video nor audio; `encrypted`;
/// `unsupported_media` if a codec does not fit the requested container; `limit_exceeded`;
/// `callback_failed`; `cancelled`; and errors of the sink.
Result<RemuxReport> remux(std::span<ByteSource* const> sources, ByteSink& sink,
                          const RemuxOptions& options = {},
                          const ProgressCallback& on_progress = {}, const CancelToken& token = {});

}  // namespace polymux::media
