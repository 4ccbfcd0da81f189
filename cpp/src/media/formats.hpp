// The ffmpeg program's choices between a decoder and the MP3 encoder: stream, sample format, rate
// and channel layout. Identical frames depend on them.
#pragma once

#include <optional>

#include "media/ffmpeg.hpp"
#include "polymux/media/mp3/encoder.hpp"

namespace polymux::media {

/// ffmpeg's automatic selection of an audio stream, in this order: packets seen, default flag, most
/// channels, lowest index. Returns nothing without audio.
[[nodiscard]] std::optional<int> best_audio_stream(const AVFormatContext& format);

/// The sample format of libmp3lame (s32p, fltp, s16p) that ffmpeg's filter negotiation selects.
[[nodiscard]] mp3::SampleFormat nearest_sample_format(AVSampleFormat input);

/// The MPEG rate nearest to the input's. At equal distance, the one that libmp3lame lists first.
[[nodiscard]] int nearest_sample_rate(int input_hz);

/// Mono or stereo, whichever keeps more of the input's positions by ffmpeg's scoring.
[[nodiscard]] ChannelLayout nearest_layout(const ChannelLayout& input);

[[nodiscard]] AVSampleFormat to_ffmpeg(mp3::SampleFormat format) noexcept;

}  // namespace polymux::media
