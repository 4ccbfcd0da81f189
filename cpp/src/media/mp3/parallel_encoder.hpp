// Encodes one file on several cores, with the frames of a single encoder. See
// docs/explanation/parallel-mp3.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "media/mp3/segment_plan.hpp"
#include "polymux/cancel.hpp"
#include "polymux/media/convert.hpp"
#include "polymux/media/mp3/encoder.hpp"
#include "polymux/result.hpp"

namespace polymux::media::mp3 {

/// Returns the next samples: as many as requested, fewer only at the end, none after it.
using PcmSource = std::function<Result<PcmBlock>(int samples)>;

/// Access to helper threads. Thread-safe functions.
struct HelperPool {
    std::function<int()> spare;  ///< Idle workers.
    std::function<void(std::function<void()>)> submit;
};

/// The process-wide pool.
[[nodiscard]] HelperPool default_helper_pool();

struct ParallelJob {
    EncoderSettings encoder;
    SegmentPlan plan;
    int threads = 1;  ///< Includes the calling thread.
    PcmSource read;
    FrameCallback write;
    /// Samples encoded so far. An error stops the work.
    std::function<Result<void>(std::int64_t samples)> on_progress;
    CancelToken token;
    HelperPool helper_pool = default_helper_pool();
    std::function<void()> before_step = {};
};

struct ParallelSummary {
    std::int64_t samples = 0;
    std::int64_t unusable_samples = 0;
    int seams = 0;
    int absorbed_segments = 0;
    std::int64_t bumped_frames = 0;
    int repairs = 0;
    int inexact_frames = 0;
};

/// Reads, writes and reports on the calling thread, which also encodes. Up to `threads - 1` idle
/// workers of the helper_pool help. `first_encoder` has the settings of `encoder` and must be
/// unused.
Result<ParallelSummary> encode_in_parallel(const ParallelJob& job,
                                           std::unique_ptr<Encoder> first_encoder);

}  // namespace polymux::media::mp3
