// WAV files whose 16-bit samples are a compressed stream, for example DTS for CD players.
#pragma once

#include <cstddef>
#include <span>

namespace polymux::media {

/// Bytes of a file that `may_be_disguised` needs: more than FFmpeg ever probes of a stream.
inline constexpr std::size_t disguise_window_bytes = std::size_t{1} << 20;

/// Returns quickly whether FFmpeg's stream probe is needed. FFmpeg runs every demuxer's probe on
/// the first packets of 16-bit PCM in WAV, a third of the work for a clip of one second. This check
/// takes microseconds. It returns false only if no probe can match, and true in doubt.
///
/// `head` is the start of the file, complete or at least `disguise_window_bytes` of it.
[[nodiscard]] bool may_be_disguised(std::span<const unsigned char> head) noexcept;

}  // namespace polymux::media
