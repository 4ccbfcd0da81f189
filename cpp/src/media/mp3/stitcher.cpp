#include "media/mp3/stitcher.hpp"

#include <algorithm>
#include <utility>

namespace polymux::media::mp3 {

namespace {

// A repair encodes so many frames before its restart, to reach the state of the encoder that it
// replaces. Fewer repairs succeed with less.
constexpr std::int64_t warm_up_frames = 60;
// A repair takes about 150 frames; the existing job encodes a shorter stretch.
constexpr std::int64_t worth_leaving_frames = 400;
// If more than every hundredth frame depends on the level, a single encoder is faster.
constexpr std::int64_t frames_per_bearable_doubt = 100;

}  // namespace

Stitcher::Stitcher(ParallelScheduler& scheduler, const StreamShape& shape,
                   std::string encoder_version, std::shared_ptr<Encoder> limits,
                   FrameCallback write)
    : scheduler_(scheduler),
      assembler_(shape, std::move(encoder_version)),
      write_(std::move(write)),
      tracker_(shape, std::move(limits)) {}

Result<bool> Stitcher::stitch() {
    while (const std::shared_ptr<EncodingJob> job = scheduler_.current()) {
        // Query the status first: a finished job has published all of its frames.
        const ParallelScheduler::JobStatus status = scheduler_.status(*job);
        if (repairing_) {
            const Outcome outcome = check_repair(*job, status);
            if (outcome == Outcome::waiting) return false;
            if (outcome == Outcome::changed) continue;
        }
        Result<Outcome> outcome = take_frames(job, status.seam);
        if (!outcome) return outcome.error();
        if (*outcome == Outcome::changed) continue;
        if (status.awaits_check && tracker_.position() >= *status.seam) {
            if (!check_seam()) return false;
            continue;
        }
        if (!status.done) return false;
        if (!status.seam) {
            if (Result<void> ended = assembler_.finish(write_); !ended) return ended.error();
            return true;
        }
        finish_job();
    }
    return false;
}

/// Takes frames up to `end`, if given.
Result<Stitcher::Outcome> Stitcher::take_frames(const std::shared_ptr<EncodingJob>& job,
                                                std::optional<std::int64_t> end) {
    FrameQueue& frames = job->encoder->frames();
    while (!end || tracker_.position() < *end) {
        const auto next = frames.outlines(tracker_.position(), 1);
        if (next.empty()) break;
        // Earlier frames came from another job.
        frames.drop_before(tracker_.position());
        const bool in_doubt = !own_frames_only_ && tracker_.position() >= accepted_until_ &&
                              tracker_.is_doubtful(next.front());
        if (in_doubt && repair(next.front())) {
            replaced_ = job;
            return Outcome::changed;
        }
        std::optional<CodedFrame> frame = frames.take();
        level_is_true_ = next.front().level_bits == tracker_.level_bits();
        tracker_.advance(next.front());
        if (Result<void> added = assembler_.add(std::move(*frame), write_); !added) {
            return added.error();
        }
    }
    return Outcome::taken;
}

/// Begins a job that reaches the doubtful frame with the correct level.
bool Stitcher::repair(const FrameOutline& frame) {
    const std::int64_t number = tracker_.position();
    std::optional<std::int64_t> restart = tracker_.find_restart(warm_up_frames);
    // Then at least with a level that is low enough.
    if (!restart && !tracker_.fits(frame)) restart = std::max(number - 3, warm_up_frames);
    if (restart && scheduler_.begin_repair(*restart - warm_up_frames, *restart, number + 1)) {
        repairing_ = true;
        ++repairs_;
        return true;
    }
    ++inexact_frames_;
    accepted_until_ = number + 1;
    return false;
}

/// The repair succeeded if it has the correct level and state before the doubtful frame.
Stitcher::Outcome Stitcher::check_repair(EncodingJob& job,
                                         const ParallelScheduler::JobStatus& status) {
    const std::int64_t number = tracker_.position();
    const auto frame = job.encoder->frames().outlines(number, 1);
    if (frame.empty() && !status.done) return Outcome::waiting;
    repairing_ = false;
    const auto replaced = std::exchange(replaced_, nullptr);
    const std::optional<EncoderState> state = job.encoder->states().before(number);
    const bool same_state = state && state == replaced->encoder->states().before(number);
    if (same_state && !frame.empty() && frame.front().level_bits == tracker_.level_bits()) {
        scheduler_.confirm_repair();
        return Outcome::taken;
    }
    ++inexact_frames_;
    accepted_until_ = number + 1;
    const auto other = replaced->encoder->frames().outlines(number, 1);
    const bool is_better = !frame.empty() && !other.empty() && tracker_.fits(frame.front()) &&
                           !tracker_.fits(other.front());
    if (is_better) {
        scheduler_.confirm_repair();
        return Outcome::taken;
    }
    scheduler_.abandon_repair();
    return Outcome::changed;
}

/// Decides whether the current job may end. If its level is the correct one, the next job's level
/// is not, so no frame shortly after the boundary may depend on it. Returns false while this is
/// unknown.
bool Stitcher::check_seam() {
    if (!level_is_true_) {
        scheduler_.accept_seam();
        return true;
    }
    const std::optional<ParallelScheduler::SeamCheck> check = scheduler_.pending_seam_check();
    if (!check) return false;
    const std::int64_t first = tracker_.position();
    const auto frames = check->target->encoder->frames().outlines(first, check->end_frame - first);
    const ReservoirTracker::Doubts doubts = tracker_.doubts(frames);
    const auto length = std::max(static_cast<std::int64_t>(frames.size()), worth_leaving_frames);
    if (!doubts.first || *doubts.first - first >= worth_leaving_frames) {
        scheduler_.accept_seam();
    } else if (doubts.count * frames_per_bearable_doubt > length) {
        scheduler_.make_sequential();
    } else {
        scheduler_.hold_until(*doubts.first + 1);
    }
    return true;
}

void Stitcher::finish_job() {
    scheduler_.advance_to_target();
    own_frames_only_ = false;
    ++seams_;
}

}  // namespace polymux::media::mp3
