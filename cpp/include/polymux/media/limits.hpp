// Limits for untrusted files. Every media call accepts a Limits. The defaults suit local files; a
// server lowers them.
#pragma once

#include <cstdint>

namespace polymux::media {

struct Limits {
    std::int64_t probe_bytes = 5'000'000;       ///< Bytes examined to recognize the streams.
    int streams = 1000;                         ///< Streams of any kind in the container.
    double duration_s = 24.0 * 3600.0;          ///< Decoded audio, counted while decoding.
    int sample_rate_hz = 768'000;               ///< Highest input sample rate.
    int channels = 64;                          ///< Highest input channel count.
    std::int64_t tag_bytes = 64 * 1024 * 1024;  ///< Tags, chapters and cover together.
    int chapters = 10'000;                      ///< Chapter marks.
};

}  // namespace polymux::media
