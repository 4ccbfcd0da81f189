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

/// A run and what the board knows of it. Guarded by the board, but for the run itself, which
/// belongs to whoever has claimed the job.
struct RunJob {
    std::unique_ptr<Run> run;
    std::int64_t segment = 0;          ///< In which the run stands.
    std::int64_t passed_segment = -1;  ///< The last one that it has encoded to the end.
    bool is_first = false;             ///< Of the file.
    bool claimed = false;              ///< A worker is at it.
    bool done = false;                 ///< Agreed with `target`, or at the end of the file.
    bool asking = false;               ///< Would be done; the stitcher has the last word.
    bool abandoned = false;            ///< Its frames came from an earlier run.
    RunStart start;
    bool proven = false;               ///< A repair that came with the true level.
    bool is_repair = false;            ///< Begun within the frames of its target, to replace some.
    std::shared_ptr<RunJob> target;    ///< The run on the other side of the seam.
    std::optional<std::int64_t> seam;  ///< The first frame that comes from `target`.
};

struct BoardOptions {
    EncoderSettings encoder;
    Verify verify = Verify::none;
    /// For tests: called before each piece of work that has been chosen, on its thread.
    std::function<void()> before_step = {};
};

/// Thread-safe. Workers claim a run, work on it step by step, and leave it when it cannot go on:
/// because it is done, or waits for samples or for another run.
class Board {
public:
    Board(BoardOptions options, std::unique_ptr<Encoder> first_encoder);

    void add(std::shared_ptr<Segment> segment);

    /// The earliest run that can go on; else, with `may_start`, a new one at the earliest segment
    /// that nobody has begun, or in what another run has still before it, if nothing else is left.
    /// Nothing when there is none, or after a failure.
    std::shared_ptr<RunJob> claim(bool may_start);
    /// Works on a claimed run for some milliseconds. False when it has been left.
    bool step(const std::shared_ptr<RunJob>& job);

    /// The earliest run whose frames are not all taken; they are the true ones up to its seam.
    [[nodiscard]] std::shared_ptr<RunJob> current() const;
    struct Standing {
        bool done = false;
        bool asking = false;
        std::optional<std::int64_t> seam;
    };
    [[nodiscard]] Standing standing(const RunJob& job) const;

    /// What the current run's question is about, once its target has gone through the segment that
    /// both are in: the target's frames up to the last that have certainly come out.
    struct Question {
        std::shared_ptr<RunJob> target;
        std::int64_t end_frame = 0;
    };
    [[nodiscard]] std::optional<Question> question();
    /// The current run may be left at its seam.
    void accept();
    /// The current run must not be left before frame `number`.
    void hold(std::int64_t number);
    /// A run that begins among the frames of the current one, becomes the current one and is held
    /// until frame `number`. None when the samples are gone.
    std::shared_ptr<RunJob> begin_repair(std::int64_t first_frame, std::int64_t empty_before,
                                         std::int64_t number);
    /// The repair has the true level: it takes the place of the run that was current before.
    void confirm_repair();
    /// The repair is given up: the run that was current before is it again.
    void abandon_repair();
    /// All of the current run's frames are taken: its target is the current one now.
    void advance();
    /// The current run must go through to the end: no other's frames can be used.
    void make_sequential();

    [[nodiscard]] int unstarted_segments() const;
    /// From the one in which the hindmost run stands.
    [[nodiscard]] int unfinished_segments() const;
    [[nodiscard]] int absorbed_segments() const;
    [[nodiscard]] std::int64_t parted_frames() const;
    [[nodiscard]] std::int64_t unusable_samples() const;
    [[nodiscard]] std::int64_t encoded_samples() const noexcept { return encoded_samples_; }

    void fail(Error error);
    [[nodiscard]] std::optional<Error> failure() const;
    void stop() noexcept { stop_ = true; }

    /// A helper's whole work; counted, so that the end can wait for it.
    void help();
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
        std::shared_ptr<RunJob> owner = {};
        int credited_samples = 0;  ///< Encoded at least once.
        bool closed = false;       ///< Its end has been reached.
    };

    using Lock = std::unique_lock<std::mutex>;

    // All of these with the mutex held.
    [[nodiscard]] Entry* entry(std::int64_t segment);
    [[nodiscard]] bool is_remnant(const Segment& segment) const;
    [[nodiscard]] bool is_confirmed(const RunJob& job) const;
    [[nodiscard]] bool may_absorb(const RunJob& job) const;
    [[nodiscard]] std::int64_t certain_end(const Segment& segment) const;
    [[nodiscard]] bool must_verify(const RunJob& job) const;
    std::shared_ptr<RunJob> begin_job();
    bool split_segment();
    [[nodiscard]] bool is_in_work_alone(const Entry& entry) const;
    bool prepare(const std::shared_ptr<RunJob>& job, int margin);
    bool enter_next_segment(const std::shared_ptr<RunJob>& job);
    bool own_or_compare(const std::shared_ptr<RunJob>& job, Entry& entry, int margin);
    void set_target(RunJob& job, std::shared_ptr<RunJob> target);
    void abandon(const std::shared_ptr<RunJob>& job);
    void abandon_until(const std::shared_ptr<RunJob>& target);
    bool finish_step(const std::shared_ptr<RunJob>& job, const Segment& segment, bool flushed);
    bool leave_locked(RunJob& job);
    void accept_locked(RunJob& job);
    void drop_used_segments();
    [[nodiscard]] bool varies() const noexcept {
        return options_.encoder.rate_control != RateControl::cbr;
    }

    Result<void> begin_run(RunJob& job, const Segment& segment);
    bool fail_step(RunJob& job, Error error);

    const BoardOptions options_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::unique_ptr<Encoder> first_encoder_;
    std::deque<Entry> segments_;
    std::int64_t first_segment_ = 0;  // Number of segments_.front().
    std::deque<std::shared_ptr<RunJob>> runs_;
    std::shared_ptr<RunJob> retired_;  // A run in whose frames another may still be looking.
    bool sequential_ = false;
    std::int64_t hold_ = 0;  // For the repair that has been begun last.
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
