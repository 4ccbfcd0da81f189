// Video and audio as they are, in one new file: nothing is decoded or encoded.
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

/// `automatic` is WebM for VP8, VP9 and AV1 with Opus or Vorbis, else MP4 where it can hold the
/// codecs, else Matroska.
enum class RemuxContainer : std::uint8_t { automatic, mp4, matroska, webm };

struct RemuxOptions {
    RemuxContainer container = RemuxContainer::automatic;
    /// `duration_s` bounds the output's length, `sample_rate_hz` and `channels` its audio.
    Limits limits = {};
};

struct RemuxedStream {
    int input = 0;             ///< Number of the source, from 0.
    int index = 0;             ///< Number of the stream in it, as `probe` numbers.
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
    std::vector<Warning> warnings;  ///< Damage that was met, time stamps that were repaired.
};

/// Writes the best video of the first source that has one, and the best audio, of the last source
/// that has one, into one file that plays while it is loaded, and commits it. Subtitles, data and
/// pictures are left out; tags, chapters, language, rotation and colours are kept.
///
/// Times begin at 0. Sources of one kind (two MPEG-TS, two MP4) that begin within ten seconds of
/// each other are taken to share one clock, so that sound stays where it was against the picture;
/// others each begin at 0. Where the time stamps of a source jump, the jump is taken out.
///
/// `sources` are one or two, each used by this call alone. `sink` must be able to patch, and for
/// MP4 to be read back. On any error it is left uncommitted and disappears with its owner.
/// Errors: those of `probe`, and no_audio when there is neither video nor audio, encrypted,
/// unsupported_media where a codec does not fit the container asked for, limit_exceeded,
/// callback_failed, cancelled, and the sink's own.
Result<RemuxReport> remux(std::span<ByteSource* const> sources, ByteSink& sink,
                          const RemuxOptions& options = {},
                          const ProgressCallback& on_progress = {}, const CancelToken& token = {});

}  // namespace polymux::media
