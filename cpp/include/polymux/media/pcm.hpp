// Decoded audio for other parts of polymux: float32, interleaved, at the requested rate.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "polymux/cancel.hpp"
#include "polymux/media/limits.hpp"
#include "polymux/media/source.hpp"
#include "polymux/result.hpp"

namespace polymux::media {

struct PcmOptions {
    int sample_rate_hz = 16'000;
    int channels = 1;  ///< 1 or 2.
    std::optional<int> audio_stream = {};
    std::optional<double> start_s = {};
    std::optional<double> end_s = {};
    bool strict = false;
    Limits limits = {};
};

struct PcmReport {
    std::int64_t samples = 0;  ///< Per channel.
    int sample_rate_hz = 0;
    int channels = 0;
    std::int64_t damaged_packets = 0;
};

/// Receives interleaved samples in [-1, 1] (louder input may exceed it). Return false to stop with
/// `callback_failed`.
using PcmSink = std::function<bool(std::span<const float>)>;

Result<PcmReport> decode_pcm(ByteSource& source, const PcmSink& sink,
                             const PcmOptions& options = {}, const CancelToken& token = {});

}  // namespace polymux::media
