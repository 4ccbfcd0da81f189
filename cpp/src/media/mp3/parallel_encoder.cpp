#include "media/mp3/parallel_encoder.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "media/mp3/parallel_scheduler.hpp"
#include "media/mp3/stitcher.hpp"
#include "polymux/pool.hpp"

namespace polymux::media::mp3 {

namespace {

constexpr int frames_per_read = 16;
constexpr int max_wait_ms = 10;

Error cancelled() {
    return Error{.code = ErrorCode::cancelled, .message = "the conversion was canceled"};
}

std::string version_text() {
    constexpr std::string_view name = "LAME ";
    return lame_version().substr(name.size());
}

/// Cuts the source's samples into segments. A segment is complete when the first samples after it
/// have arrived, or the end.
class Reader {
public:
    Reader(const ParallelJob& job, ParallelScheduler& scheduler)
        : job_(job), scheduler_(scheduler) {}

    [[nodiscard]] bool ended() const noexcept { return ended_; }
    [[nodiscard]] std::int64_t samples() const noexcept { return samples_; }

    /// Reads one whole segment and passes it to the scheduler. `alone`: no helper was available.
    Result<void> read(bool alone) {
        const int frames = job_.plan.length_at(next_frame_, alone);
        const int frame_samples = shape_of(job_.encoder).frame_samples();
        const int wanted = frames * frame_samples;
        if (!segment_) open_segment();
        for (;;) {
            if (job_.token.cancelled()) return cancelled();
            const int missing = wanted - segment_->samples();
            const int asked =
                missing > 0 ? std::min(missing, frames_per_read * frame_samples) : frame_samples;
            Result<PcmBlock> block = job_.read(asked);
            if (!block) return block.error();
            samples_ += block->samples;
            ended_ = block->samples < asked;
            if (missing > 0) {
                segment_->append(*block);
                if (ended_) break;
                continue;
            }
            if (block->samples > 0) {
                const std::int64_t behind = segment_->first_frame() + frames;
                publish(false);
                next_frame_ = behind;
                open_segment();
                segment_->append(*block);
                if (ended_) publish(true);
                return {};
            }
            break;
        }
        publish(true);
        return {};
    }

private:
    void open_segment() { segment_ = std::make_shared<Segment>(next_frame_, job_.encoder); }

    void publish(bool last) {
        segment_->set_last(last);
        scheduler_.add(std::move(segment_));
        segment_ = nullptr;
    }

    const ParallelJob& job_;
    ParallelScheduler& scheduler_;
    std::shared_ptr<Segment> segment_;
    std::int64_t next_frame_ = 0;
    std::int64_t samples_ = 0;
    bool ended_ = false;
};

/// The work of the calling thread.
class Coordinator {
public:
    Coordinator(const ParallelJob& job, std::unique_ptr<Encoder> first_encoder,
                std::shared_ptr<Encoder> limits)
        : job_(job),
          scheduler_(std::make_shared<ParallelScheduler>(
              SchedulerOptions{.encoder = job.encoder,
                               .min_last_frames = job.plan.min_last_frames,
                               .before_step = job.before_step},
              std::move(first_encoder))),
          reader_(job, *scheduler_),
          stitcher_(*scheduler_, shape_of(job.encoder), version_text(), std::move(limits),
                    job.write) {}

    ~Coordinator() {
        scheduler_->stop();
        scheduler_->wait_for_helpers();
    }

    Coordinator(const Coordinator&) = delete;
    Coordinator& operator=(const Coordinator&) = delete;

    Result<ParallelSummary> run() {
        for (;;) {
            if (job_.token.cancelled()) return cancelled();
            if (const std::optional<Error> failure = scheduler_->failure()) return *failure;
            const Result<bool> complete = stitcher_.stitch();
            if (!complete) return complete.error();
            if (*complete) return summary();
            if (Result<void> called = job_.on_progress(scheduler_->encoded_samples()); !called) {
                return called.error();
            }
            if (Result<void> done = work(); !done) return done.error();
        }
    }

private:
    /// Does the most urgent work: samples for the others, then encoding, then reading ahead.
    Result<void> work() {
        const int idle = idle_workers();
        const int unstarted = scheduler_->unstarted_segments();
        const bool has_helpers = idle > 0 || scheduler_->helpers() > 0;
        const int wanted = has_helpers ? 1 + idle : 0;
        const bool may_read =
            !reader_.ended() && scheduler_->unfinished_segments() < job_.threads + 2;
        if (may_read && unstarted < wanted) return reader_.read(!has_helpers);
        call_helpers(idle, unstarted);
        if (step()) return {};
        if (may_read) return reader_.read(!has_helpers);
        wait();
        return {};
    }

    [[nodiscard]] int idle_workers() const {
        return std::min(job_.threads - 1 - scheduler_->helpers(), job_.helper_pool.spare());
    }

    void call_helpers(int idle, int unstarted) {
        for (int count = std::min(idle, unstarted); count > 0; --count) {
            scheduler_->expect_helper();
            job_.helper_pool.submit([scheduler = scheduler_] { scheduler->run_helper(); });
        }
    }

    /// Encodes a few frames of this thread's current job. Jobs for which helpers were requested are
    /// left to them.
    bool step() {
        if (!job_in_progress_) {
            const int unstarted = scheduler_->unstarted_segments();
            const bool may_split = unstarted == 0 && reader_.ended();
            job_in_progress_ =
                scheduler_->claim(may_split || unstarted > scheduler_->expected_helpers());
        }
        if (!job_in_progress_) return false;
        if (!scheduler_->step(job_in_progress_)) job_in_progress_ = nullptr;
        return true;
    }

    void wait() {
        const Pool::Blocking blocking;
        scheduler_->wait_for_change(max_wait_ms);
        // A helper that has not started by now is waiting behind other work of the pool.
        scheduler_->forget_expected_helpers();
    }

    ParallelSummary summary() const {
        return {.samples = reader_.samples(),
                .unusable_samples = scheduler_->unusable_samples(),
                .seams = stitcher_.seams(),
                .absorbed_segments = scheduler_->absorbed_segments(),
                .bumped_frames = stitcher_.bumped_frames(),
                .repairs = stitcher_.repairs(),
                .inexact_frames = stitcher_.inexact_frames()};
    }

    const ParallelJob& job_;
    std::shared_ptr<ParallelScheduler> scheduler_;
    Reader reader_;
    Stitcher stitcher_;
    std::shared_ptr<EncodingJob> job_in_progress_;
};

}  // namespace

HelperPool default_helper_pool() {
    return {.spare = [] { return Pool::instance().spare(); },
            .submit = [](std::function<void()> work) { Pool::instance().submit(std::move(work)); }};
}

Result<ParallelSummary> encode_in_parallel(const ParallelJob& job,
                                           std::unique_ptr<Encoder> first_encoder) {
    std::shared_ptr<Encoder> limits;
    if (job.encoder.rate_control != RateControl::cbr) {
        Result<std::unique_ptr<Encoder>> created = create_lame_encoder(job.encoder);
        if (!created) return created.error();
        limits = std::move(*created);
    }
    Coordinator coordinator(job, std::move(first_encoder), std::move(limits));
    return coordinator.run();
}

}  // namespace polymux::media::mp3
