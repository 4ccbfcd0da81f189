// What there is to do in one parallel conversion, and who does it.
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

/// One encoder on its way through the file. The scheduler guards all members except the encoder
/// itself, which belongs to the worker that has claimed the job.
struct EncodingJob {
    std::unique_ptr<SegmentEncoder> encoder;  ///< Null until the first step.
    std::int64_t segment = 0;                 ///< The segment it is encoding.
    std::int64_t passed_segment = -1;         ///< The last segment encoded to the end.
    bool is_first = false;                    ///< Of the file.
    bool claimed = false;                     ///< A worker is encoding it.
    bool done = false;                        ///< Agreed with `target`, or at the end of the file.
    bool awaits_check = false;  ///< Agreed; the stitcher still has to accept the seam.
    bool abandoned = false;     ///< Its frames came from an earlier job.
    EncodingStart start;
    bool proven = false;     ///< A repair that reached the true level.
    bool is_repair = false;  ///< Begins within the frames of its target, to replace some.
    std::shared_ptr<EncodingJob> target;  ///< The job on the other side of the seam.
    std::optional<std::int64_t> seam;     ///< The first frame that comes from `target`.
};

struct SchedulerOptions {
    EncoderSettings encoder;
    Verify verify = Verify::none;
    /// For tests: called before each piece of work that has been chosen, on its thread.
    std::function<void()> before_step = {};
};

/// Thread-safe. Workers claim a job, encode step by step, and leave the job when it cannot go on:
/// it is done, or waits for samples or for another job.
class ParallelScheduler {
public:
    ParallelScheduler(SchedulerOptions options, std::unique_ptr<Encoder> first_encoder);

    void add(std::shared_ptr<Segment> segment);

    /// The earliest job that can go on. With `may_start` else a new job: at the earliest segment
    /// without one or, if every segment has one, in the second half of what a job has left.
    /// Null when there is none, or after a failure.
    std::shared_ptr<EncodingJob> claim(bool may_start);
    /// Works on a claimed job for some milliseconds. False when the job has been left.
    bool step(const std::shared_ptr<EncodingJob>& job);

    /// The earliest job whose frames are not all taken; they are the true ones up to its seam.
    [[nodiscard]] std::shared_ptr<EncodingJob> current() const;
    struct JobStatus {
        bool done = false;
        bool awaits_check = false;
        std::optional<std::int64_t> seam;
    };
    [[nodiscard]] JobStatus status(const EncodingJob& job) const;

    /// What decides whether the current job may end at its seam, once its target has encoded the
    /// segment that both are in: the target's frames up to the last that have certainly come out.
    struct SeamCheck {
        std::shared_ptr<EncodingJob> target;
        std::int64_t end_frame = 0;
    };
    [[nodiscard]] std::optional<SeamCheck> pending_seam_check();
    /// The current job may end at its seam.
    void accept_seam();
    /// The current job must not end before frame `number`.
    void hold_until(std::int64_t number);
    /// A job that begins among the frames of the current one, becomes the current one and must not
    /// end before frame `number`. Null when the samples are gone.
    std::shared_ptr<EncodingJob> begin_repair(std::int64_t first_frame, std::int64_t empty_before,
                                              std::int64_t number);
    /// The repair has the true level: it replaces the job that was current before.
    void confirm_repair();
    /// The repair is given up: the job that was current before is current again.
    void abandon_repair();
    /// All of the current job's frames are taken: its target becomes the current job.
    void advance_to_target();
    /// The current job encodes the rest of the file: no other job's frames can be used.
    void make_sequential();

    [[nodiscard]] int unstarted_segments() const;
    /// Counted from the segment of the job that is furthest behind.
    [[nodiscard]] int unfinished_segments() const;
    [[nodiscard]] int absorbed_segments() const;
    [[nodiscard]] std::int64_t parted_frames() const;
    [[nodiscard]] std::int64_t unusable_samples() const;
    [[nodiscard]] std::int64_t encoded_samples() const noexcept { return encoded_samples_; }

    void fail(Error error);
    [[nodiscard]] std::optional<Error> failure() const;
    void stop() noexcept { stop_ = true; }

    /// A helper's whole work; counted, so that the end can wait for it.
    void run_helper();
    void expect_helper();
    [[nodiscard]] int helpers() const;           ///< At work or expected.
    [[nodiscard]] int expected_helpers() const;  ///< Not yet at work.
    void forget_expected_helpers();
    void wait_for_change(int timeout_ms);
    /// After `stop`.
    void wait_for_helpers();

private:
    struct Entry {
        std::shared_ptr<Segment> segment;
        std::shared_ptr<EncodingJob> owner = {};
        int credited_samples = 0;  ///< Encoded at least once.
        bool closed = false;       ///< Its end has been reached.
    };

    using Lock = std::unique_lock<std::mutex>;

    // All of these with the mutex held.
    [[nodiscard]] Entry* entry(std::int64_t segment);
    [[nodiscard]] bool is_remnant(const Segment& segment) const;
    [[nodiscard]] bool is_confirmed(const EncodingJob& job) const;
    [[nodiscard]] bool may_absorb(const EncodingJob& job) const;
    [[nodiscard]] std::int64_t certain_end(const Segment& segment) const;
    [[nodiscard]] bool must_verify(const EncodingJob& job) const;
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
    void accept_seam_locked(EncodingJob& job);
    void drop_used_segments();
    [[nodiscard]] bool varies() const noexcept {
        return options_.encoder.rate_control != RateControl::cbr;
    }

    Result<void> create_encoder(EncodingJob& job, const Segment& segment);
    bool fail_step(EncodingJob& job, Error error);

    const SchedulerOptions options_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::unique_ptr<Encoder> first_encoder_;
    std::deque<Entry> segments_;
    std::int64_t first_segment_ = 0;  // Number of segments_.front().
    std::deque<std::shared_ptr<EncodingJob>> jobs_;
    std::shared_ptr<EncodingJob> retired_;  // Another job may still be comparing with its frames.
    bool sequential_ = false;
    std::int64_t repair_hold_ = 0;  // For the repair that has been begun last.
    std::optional<Error> failure_;
    int absorbed_segments_ = 0;
    std::int64_t parted_frames_ = 0;
    std::int64_t unusable_samples_ = 0;
    std::atomic<std::int64_t> encoded_samples_ = 0;
    std::atomic<bool> stop_ = false;
    int active_helpers_ = 0;
    int expected_helpers_ = 0;
};

}  // namespace polymux::media::mp3
