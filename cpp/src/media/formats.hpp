// The choices that the ffmpeg program makes between a decoder and the MP3 encoder: which stream,
// which sample format, rate and channel layout. They decide whether frames are identical.
#pragma once

#include <optional>

#include "media/ffmpeg.hpp"
#include "polymux/media/mp3/encoder.hpp"

namespace polymux::media {

/// ffmpeg's automatic stream selection for audio: seen packets, then the default mark, then most
/// channels, then the lowest index. Nothing without audio.
[[nodiscard]] std::optional<int> best_audio_stream(const AVFormatContext& format);

/// The format of libmp3lame's (s32p, fltp, s16p) that ffmpeg's filter negotiation takes.
[[nodiscard]] mp3::SampleFormat nearest_sample_format(AVSampleFormat input);

/// The MPEG rate nearest to the input's; of two equally near, the one libmp3lame lists first.
[[nodiscard]] int nearest_sample_rate(int input_hz);

/// Mono or stereo, whichever keeps more of the input's positions by ffmpeg's scoring.
[[nodiscard]] ChannelLayout nearest_layout(const ChannelLayout& input);

[[nodiscard]] AVSampleFormat to_ffmpeg(mp3::SampleFormat format) noexcept;

}  // namespace polymux::media
