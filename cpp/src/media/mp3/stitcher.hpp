// Joins the frames of all jobs into one stream, in order. Verifies that the assembler models this
// LAME correctly before it crosses a segment boundary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "media/mp3/bitstream_assembler.hpp"
#include "media/mp3/parallel_scheduler.hpp"
#include "media/mp3/reservoir_tracker.hpp"
#include "polymux/media/mp3/encoder.hpp"

namespace polymux::media::mp3 {

/// As long as the frames come from the first encoder, the assembler must reproduce that encoder's
/// bytes. If it does not, the first encoder continues alone, and nothing wrong has been written.
/// Used by one thread.
class Stitcher {
public:
    Stitcher(ParallelScheduler& scheduler, const StreamShape& shape, std::string encoder_version,
             const BitstreamAssembler::Options& options, FrameCallback write);

    /// Takes and writes the available frames. Returns true when the whole file has been written.
    Result<bool> stitch();

    [[nodiscard]] int seams() const noexcept { return seams_; }
    [[nodiscard]] int bumped_frames() const noexcept { return assembler_.bumped_frames(); }
    [[nodiscard]] bool fell_back() const noexcept { return sequential_; }
    /// Jobs started to encode frames again whose content depends on the reservoir's level.
    [[nodiscard]] int repairs() const noexcept { return repairs_; }
    /// Such frames that could not be encoded again.
    [[nodiscard]] int inexact_frames() const noexcept { return inexact_frames_; }

private:
    /// Result of taking frames from a job.
    enum class Outcome : std::uint8_t { taken, waiting, changed };

    Result<Outcome> take_frames(EncodingJob& job, std::optional<std::int64_t> end);
    [[nodiscard]] bool repair();
    [[nodiscard]] Outcome check_repair(EncodingJob& job,
                                       const ParallelScheduler::JobStatus& status);
    [[nodiscard]] bool check_seam();
    void finish_job();
    Result<void> add(FrameQueue::Taken taken);
    Result<void> check_and_write(std::span<const std::byte> frame);
    Result<void> fall_back();
    Result<void> finish();

    ParallelScheduler& scheduler_;
    BitstreamAssembler assembler_;
    FrameCallback write_;
    FrameCallback from_assembler_;
    ReservoirTracker tracker_;
    bool level_is_true_ = true;        // Before the last frame, for the encoder that it came from.
    bool repairing_ = false;           // The current job is an unconfirmed repair.
    std::int64_t accepted_until_ = 0;  // Doubts about frames before this one are resolved.
    int encoder_memory_frames_;
    std::deque<std::vector<std::byte>>
        expected_;  // The first encoder's original bytes, not yet written.
    bool own_frames_only_ = true;
    bool differs_ = false;
    bool sequential_ = false;
    int seams_ = 0;
    int repairs_ = 0;
    int inexact_frames_ = 0;
};

}  // namespace polymux::media::mp3
