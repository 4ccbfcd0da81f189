// Joins the frames of all jobs into one stream, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "media/mp3/bitstream_assembler.hpp"
#include "media/mp3/parallel_scheduler.hpp"
#include "media/mp3/reservoir_tracker.hpp"
#include "polymux/media/mp3/encoder.hpp"

namespace polymux::media::mp3 {

/// Used by one thread.
class Stitcher {
public:
    /// `limits`: as for ReservoirTracker.
    Stitcher(ParallelScheduler& scheduler, const StreamShape& shape, std::string encoder_version,
             std::shared_ptr<Encoder> limits, FrameCallback write);

    /// Takes and writes the available frames. Returns true when the whole file has been written.
    Result<bool> stitch();

    [[nodiscard]] int seams() const noexcept { return seams_; }
    [[nodiscard]] int bumped_frames() const noexcept { return assembler_.bumped_frames(); }
    /// Jobs started to encode frames again whose content depends on the reservoir's level.
    [[nodiscard]] int repairs() const noexcept { return repairs_; }
    /// Such frames that could not be encoded again. They may differ from one encoder's.
    [[nodiscard]] int inexact_frames() const noexcept { return inexact_frames_; }

private:
    /// Result of taking frames from a job.
    enum class Outcome : std::uint8_t { taken, waiting, changed };

    Result<Outcome> take_frames(const std::shared_ptr<EncodingJob>& job,
                                std::optional<std::int64_t> end);
    [[nodiscard]] bool repair(const FrameOutline& frame);
    [[nodiscard]] Outcome check_repair(EncodingJob& job,
                                       const ParallelScheduler::JobStatus& status);
    [[nodiscard]] bool check_seam();
    void finish_job();

    ParallelScheduler& scheduler_;
    BitstreamAssembler assembler_;
    FrameCallback write_;
    ReservoirTracker tracker_;
    bool level_is_true_ = true;        // Before the last frame, for the encoder that it came from.
    bool repairing_ = false;           // The current job is an unconfirmed repair.
    std::int64_t accepted_until_ = 0;  // Doubts about frames before this one are resolved.
    bool own_frames_only_ = true;      // All frames came from the first encoder.
    std::shared_ptr<EncodingJob> replaced_;  // The job whose frame the repair encodes again.
    int seams_ = 0;
    int repairs_ = 0;
    int inexact_frames_ = 0;
};

}  // namespace polymux::media::mp3
