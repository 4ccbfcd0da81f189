// WAV files whose 16-bit samples are really a compressed stream, as with DTS made for CD players.
#pragma once

#include <cstddef>
#include <span>

namespace polymux::media {

/// How much of a file `may_be_disguised` wants to see: more than FFmpeg ever probes of a stream.
inline constexpr std::size_t disguise_window_bytes = std::size_t{1} << 20;

/// FFmpeg gives the first packets of 16-bit PCM in WAV to every demuxer's probe, which costs a
/// third of the work for a clip of one second. This says in microseconds whether any of them could
/// find what it needs. False only where none can; true when in doubt.
///
/// `head` is the start of the file, whole or at least `disguise_window_bytes` of it.
[[nodiscard]] bool may_be_disguised(std::span<const unsigned char> head) noexcept;

}  // namespace polymux::media
