// Encodes samples as FLAC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "polymux/result.hpp"

namespace polymux::media {

/// Returns a FLAC file with interleaved 16-bit samples. The same samples give the same file.
Result<std::vector<std::byte>> encode_flac(std::span<const std::int16_t> samples, int channels,
                                           int sample_rate_hz);

}  // namespace polymux::media
