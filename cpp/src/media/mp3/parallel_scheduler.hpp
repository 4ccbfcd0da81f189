// Schedules the work of one parallel conversion.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "media/mp3/segment.hpp"
#include "media/mp3/segment_encoder.hpp"
#include "polymux/media/convert.hpp"
#include "polymux/result.hpp"

namespace polymux::media::mp3 {

/// The progress of one encoder through the file. The scheduler guards all members except the
/// encoder, which belongs to the worker that has claimed the job.
struct EncodingJob {
    std::unique_ptr<SegmentEncoder> encoder;  ///< Null until the first step.
    std::int64_t segment = 0;                 ///< The segment being encoded.
    std::int64_t passed_segment = -1;         ///< The last segment encoded to the end.
    bool claimed = false;                     ///< A worker is encoding it.
    bool done = false;                        ///< Agreed with `target`, or at the end of the file.
    bool awaits_check = false;   ///< Agreed; the stitcher still has to accept the boundary.
    bool awaits_target = false;  ///< Proposes a seam that is not settled yet.
    bool abandoned = false;      ///< An earlier job supplies its frames.
    EncodingStart start;
    bool proven = false;     ///< A repair that reached the correct level.
    bool is_repair = false;  ///< Begins within the frames of its target, to replace some.
    std::shared_ptr<EncodingJob> target;  ///< The job on the other side of the segment boundary.
    std::optional<std::int64_t> seam;     ///< The first frame that comes from `target`.
};

struct SchedulerOptions {
    EncoderSettings encoder;
    int min_last_frames = 0;  ///< As in the plan.
    /// For tests: called before each selected piece of work, on its thread.
    std::function<void()> before_step = {};
};

/// Thread-safe. Workers claim a job, encode step by step, and release the job when it cannot
/// continue: it is done, or waits for samples or for another job.
class ParallelScheduler {
public:
    ParallelScheduler(SchedulerOptions options, std::unique_ptr<Encoder> first_encoder);

    void add(std::shared_ptr<Segment> segment);

    /// Returns the earliest job that can continue. With `may_start`, otherwise a new job: at the
    /// earliest segment without one or, if every segment has one, in the second half of a job's
    /// remaining work. Returns null if no work is available, or after a failure.
    std::shared_ptr<EncodingJob> claim(bool may_start);
    /// Works on a claimed job for a few milliseconds. Returns false if the job was released.
    bool step(const std::shared_ptr<EncodingJob>& job);

    /// The earliest job with frames not yet taken. Its frames are valid up to its boundary.
    [[nodiscard]] std::shared_ptr<EncodingJob> current() const;
    struct JobStatus {
        bool done = false;
        bool awaits_check = false;
        std::optional<std::int64_t> seam;
    };
    [[nodiscard]] JobStatus status(const EncodingJob& job) const;

    /// Data to decide whether the current job may end at its boundary, once its target has encoded
    /// the segment that contains both: the target's frames up to the last that has certainly been
    /// emitted.
    struct SeamCheck {
        std::shared_ptr<EncodingJob> target;
        std::int64_t end_frame = 0;
    };
    [[nodiscard]] std::optional<SeamCheck> pending_seam_check();
    /// Lets the current job end at its boundary.
    void accept_seam();
    /// Prevents the current job from ending before frame `number`.
    void hold_until(std::int64_t number);
    /// Begins a job within the frames of the current one. It becomes the current job and must not
    /// end before frame `number`. Returns null if the samples are no longer available.
    std::shared_ptr<EncodingJob> begin_repair(std::int64_t first_frame, std::int64_t empty_before,
                                              std::int64_t number);
    /// The repair has the correct level and replaces the previous current job.
    void confirm_repair();
    /// Abandons the repair; the previous job becomes current again.
    void abandon_repair();
    /// All of the current job's frames were taken; its target becomes the current job.
    void advance_to_target();
    /// The current job encodes the rest of the file, because no other job's frames can be used.
    void make_sequential();

    [[nodiscard]] int unstarted_segments() const;
    /// Counted from the segment of the job that is furthest behind.
    [[nodiscard]] int unfinished_segments() const;
    [[nodiscard]] int absorbed_segments() const;
    [[nodiscard]] std::int64_t unusable_samples() const;
    [[nodiscard]] std::int64_t encoded_samples() const noexcept { return encoded_samples_; }

    void fail(Error error);
    [[nodiscard]] std::optional<Error> failure() const;
    void stop() noexcept { stop_ = true; }

    /// Runs a helper from start to end. Counted, because the end waits for all helpers.
    void run_helper();
    void expect_helper();
    [[nodiscard]] int helpers() const;           ///< Working or expected.
    [[nodiscard]] int expected_helpers() const;  ///< Not yet working.
    void forget_expected_helpers();
    void wait_for_change(int timeout_ms);
    /// Call after `stop`.
    void wait_for_helpers();

private:
    struct Entry {
        std::shared_ptr<Segment> segment;
        std::shared_ptr<EncodingJob> owner = {};
        int credited_samples = 0;  ///< Encoded at least once.
        bool closed = false;       ///< Its end has been reached.
    };

    using Lock = std::unique_lock<std::mutex>;

    // Call all of these with the mutex held.
    [[nodiscard]] Entry* entry(std::int64_t segment);
    [[nodiscard]] bool is_remnant(const Segment& segment) const;
    [[nodiscard]] bool is_confirmed(const EncodingJob& job) const;
    [[nodiscard]] bool may_absorb(const EncodingJob& job) const;
    [[nodiscard]] std::int64_t certain_end(const Segment& segment) const;
    std::shared_ptr<EncodingJob> begin_job();
    bool split_segment();
    [[nodiscard]] bool is_encoded_by_owner_alone(const Entry& entry) const;
    bool prepare(const std::shared_ptr<EncodingJob>& job, int margin);
    bool enter_next_segment(const std::shared_ptr<EncodingJob>& job);
    bool take_or_compare(const std::shared_ptr<EncodingJob>& job, Entry& entry, int margin);
    void set_target(EncodingJob& job, std::shared_ptr<EncodingJob> target);
    void abandon(const std::shared_ptr<EncodingJob>& job);
    void abandon_until(const std::shared_ptr<EncodingJob>& target);
    bool finish_step(const std::shared_ptr<EncodingJob>& job, const Segment& segment, bool flushed);
    bool leave_locked(EncodingJob& job);
    void settle_seams(const EncodingJob* idle);
    void settle_seam(EncodingJob& job, const EncodingJob* idle);
    void drop_used_segments();
    [[nodiscard]] bool varies() const noexcept {
        return options_.encoder.rate_control != RateControl::cbr;
    }

    Result<void> create_encoder(EncodingJob& job, const Segment& segment);
    bool fail_step(EncodingJob& job, Error error);
    void fail_locked(Error error);

    const SchedulerOptions options_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::unique_ptr<Encoder> first_encoder_;
    std::deque<Entry> segments_;
    std::int64_t first_segment_ = 0;  // Number of segments_.front().
    std::deque<std::shared_ptr<EncodingJob>> jobs_;
    std::shared_ptr<EncodingJob> retired_;  // Another job may still be comparing with its frames.
    bool sequential_ = false;
    std::int64_t repair_hold_ = 0;  // For the most recently started repair.
    std::optional<Error> failure_;
    int absorbed_segments_ = 0;
    std::int64_t unusable_samples_ = 0;
    std::atomic<std::int64_t> encoded_samples_ = 0;
    std::atomic<bool> stop_ = false;
    int active_helpers_ = 0;
    int expected_helpers_ = 0;
};

}  // namespace polymux::media::mp3
