#include "media/mp3/parallel_scheduler.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <vector>

#include "media/mp3/segment_plan.hpp"

namespace polymux::media::mp3 {

namespace {

// A few milliseconds of work each, so a canceled conversion ends quickly.
constexpr int frames_per_step = 8;
constexpr int frames_per_splice_step = 4;
// A job that had to wait for another continues when that one is well ahead.
constexpr int resume_margin_frames = 100;
// A repair has to begin up to this many frames before the job that it is for.
constexpr std::int64_t frames_kept_for_repairs = 730;
// Frames that both sides of a segment boundary encode, and the shortest split worth that cost.
constexpr int seam_frames = 70;
constexpr int min_split_frames = 470;

}  // namespace

ParallelScheduler::ParallelScheduler(SchedulerOptions options,
                                     std::unique_ptr<Encoder> first_encoder)
    : options_(std::move(options)), first_encoder_(std::move(first_encoder)) {}

void ParallelScheduler::add(std::shared_ptr<Segment> segment) {
    const Lock lock(mutex_);
    // The thread that cut it does not know how many earlier segments have been split since.
    segment->set_number(first_segment_ + static_cast<std::int64_t>(segments_.size()));
    segments_.push_back({.segment = std::move(segment)});
    changed_.notify_all();
}

ParallelScheduler::Entry* ParallelScheduler::entry(std::int64_t segment) {
    const std::int64_t index = segment - first_segment_;
    if (index < 0 || index >= static_cast<std::int64_t>(segments_.size())) return nullptr;
    return &segments_[static_cast<std::size_t>(index)];
}

// Whether a segment is too short for a separate job.
bool ParallelScheduler::is_remnant(const Segment& segment) const {
    const int min_samples = options_.min_last_frames * shape_of(options_.encoder).frame_samples();
    return segment.last() && segment.samples() < min_samples;
}

// Only jobs with a confirmed start may absorb another job, so the result does not depend on which
// is faster.
bool ParallelScheduler::is_confirmed(const EncodingJob& job) const {
    for (const auto& earlier : jobs_) {
        if (earlier.get() == &job) return true;
        if (!earlier->done) return false;
    }
    return false;
}

// Unless the bitrate is constant, a repair may begin in any remaining frame, and would find other
// jobs for comparison if some were already absorbed. If the stitcher has all earlier frames, the
// result does not depend on which job is faster.
bool ParallelScheduler::may_absorb(const EncodingJob& job) const {
    if (!is_confirmed(job)) return false;
    const bool leaves_all = job.is_repair && !job.proven;
    if (!varies() || leaves_all) return true;
    const FrameQueue& frames = job.encoder->frames();
    return jobs_.front().get() == &job && frames.begin() == frames.end();
}

std::shared_ptr<EncodingJob> ParallelScheduler::claim(bool may_start) {
    const Lock lock(mutex_);
    if (stop_) return nullptr;
    const auto jobs = jobs_;  // Jobs may turn out to be absorbed during the loop.
    for (const auto& job : jobs) {
        if (job->claimed || job->done || job->awaits_check || job->awaits_target ||
            job->abandoned || !prepare(job, resume_margin_frames))
            continue;
        job->claimed = true;
        return job;
    }
    if (!may_start || sequential_) return nullptr;
    std::shared_ptr<EncodingJob> begun = begin_job();
    if (!begun && split_segment()) begun = begin_job();
    return begun;
}

// Begins at the earliest segment without a job.
std::shared_ptr<EncodingJob> ParallelScheduler::begin_job() {
    for (std::size_t index = 0; index < segments_.size(); ++index) {
        Entry& free = segments_[index];
        const bool is_first = jobs_.empty() && index == 0;
        if (free.owner || (!is_first && is_remnant(*free.segment))) continue;
        auto job = std::make_shared<EncodingJob>();
        job->segment = free.segment->number();
        job->claimed = true;
        free.owner = job;
        // Jobs after a segment that has no job started after it.
        const auto behind = std::ranges::find_if(
            jobs_, [&job](const auto& other) { return other->segment > job->segment; });
        jobs_.insert(behind, job);
        return job;
    }
    return nullptr;
}

// At a constant bitrate, segment boundaries may be anywhere: an idle worker takes half of the
// remaining work of another.
bool ParallelScheduler::split_segment() {
    if (varies()) return false;
    const int frame_samples = shape_of(options_.encoder).frame_samples();
    std::size_t longest_index = segments_.size();
    int max_left = min_split_frames;
    for (std::size_t index = 0; index < segments_.size(); ++index) {
        const Entry& each = segments_[index];
        const int left = (each.segment->samples() - each.credited_samples) / frame_samples;
        if (left < max_left || !is_encoded_by_owner_alone(each)) continue;
        max_left = left;
        longest_index = index;
    }
    if (longest_index == segments_.size()) return false;
    Entry& entry = segments_[longest_index];
    const int period = padding_period(options_.encoder);
    // The job there also encodes the frames at the boundary.
    const int cut = entry.credited_samples / frame_samples + (max_left + seam_frames) / 2;
    const int begin_frames = (cut + period - 1) / period * period;
    const std::int64_t first_frame = entry.segment->first_frame() + begin_frames;
    auto rest = std::make_shared<Segment>(entry.segment, begin_frames * frame_samples, first_frame);
    entry.segment->cut(begin_frames * frame_samples);
    const std::int64_t number = entry.segment->number();
    for (std::size_t index = longest_index + 1; index < segments_.size(); ++index) {
        segments_[index].segment->renumber();
    }
    for (const auto& job : jobs_) {
        if (job->segment > number) ++job->segment;
        if (job->passed_segment > number) ++job->passed_segment;
    }
    segments_.insert(segments_.begin() + static_cast<std::ptrdiff_t>(longest_index) + 1,
                     {.segment = std::move(rest)});
    return true;
}

// Only its own job is there, and that job is not at the end.
bool ParallelScheduler::is_encoded_by_owner_alone(const Entry& entry) const {
    const EncodingJob* owner = entry.owner.get();
    if (owner == nullptr || !owner->encoder || !owner->claimed || entry.closed) return false;
    const std::int64_t number = entry.segment->number();
    if (owner->segment != number || owner->passed_segment >= number) return false;
    return std::ranges::none_of(jobs_, [owner, number](const auto& job) {
        return job.get() != owner && !job->done && !job->awaits_target && job->segment == number;
    });
}

bool ParallelScheduler::step(const std::shared_ptr<EncodingJob>& job) {
    std::shared_ptr<const Segment> segment;
    bool splicing = false;
    bool owns = false;
    {
        const Lock lock(mutex_);
        if (stop_ || job->abandoned || !prepare(job, 0)) return leave_locked(*job);
        segment = entry(job->segment)->segment;
        splicing = job->target != nullptr;
        owns = entry(job->segment)->owner == job;
    }
    if (options_.before_step) options_.before_step();
    if (!job->encoder) {
        if (Result<void> begun = create_encoder(*job, *segment); !begun) {
            return fail_step(*job, begun.error());
        }
    }
    SegmentEncoder& encoder = *job->encoder;
    const std::int64_t unusable_before = encoder.unusable_samples();
    Result<int> samples =
        encoder.encode(*segment, splicing ? frames_per_splice_step : frames_per_step, stop_);
    if (!samples) return fail_step(*job, samples.error());
    bool flushing = false;
    {
        // A closed segment cannot be cut any more.
        const Lock lock(mutex_);
        const bool at_end = encoder.sample >= segment->samples();
        flushing = at_end && segment->last() && (!splicing || *samples == 0) && !encoder.seam() &&
                   !encoder.proposes_seam();
        if (Entry* here = entry(segment->number()); at_end && here != nullptr) here->closed = true;
    }
    if (flushing) {
        if (Result<void> flushed = encoder.flush(); !flushed)
            return fail_step(*job, flushed.error());
    }
    const Lock lock(mutex_);
    Entry* const here = entry(segment->number());
    if (here != nullptr && owns && encoder.sample > here->credited_samples) {
        encoded_samples_ += encoder.sample - here->credited_samples;
        unusable_samples_ += encoder.unusable_samples() - unusable_before;
        here->credited_samples = encoder.sample;
    }
    return finish_step(job, *segment, flushing);
}

Result<void> ParallelScheduler::create_encoder(EncodingJob& job, const Segment& segment) {
    // Owned by the scheduler until the first segment's job takes it.
    const bool is_first = segment.number() == 0 && !job.is_repair && first_encoder_ != nullptr;
    std::unique_ptr<Encoder> lame;
    if (is_first) {
        lame = std::move(first_encoder_);
    } else {
        Result<std::unique_ptr<Encoder>> created = create_lame_encoder(options_.encoder);
        if (!created) return created.error();
        lame = std::move(*created);
    }
    auto encoder =
        std::make_unique<SegmentEncoder>(std::move(lame), options_.encoder, segment, job.start);
    const Lock lock(mutex_);
    if (job.is_repair) encoder->join_from(repair_hold_);
    job.encoder = std::move(encoder);
    return {};
}

// Brings an unclaimed job to its next samples, if there are any. Returns true if there is work:
// samples to encode, or the end of the file.
bool ParallelScheduler::prepare(const std::shared_ptr<EncodingJob>& job, int margin) {
    Entry* here = entry(job->segment);
    if (here == nullptr) return false;
    if (!job->encoder) return true;
    if (job->encoder->sample >= here->segment->samples()) {
        if (here->segment->last()) return here->owner == job || may_absorb(*job);
        if (!enter_next_segment(job)) return false;
        here = entry(job->segment);
    }
    return take_or_compare(job, *here, margin);
}

bool ParallelScheduler::enter_next_segment(const std::shared_ptr<EncodingJob>& job) {
    Entry* next = entry(job->segment + 1);
    if (next == nullptr) return false;
    // If boundaries depend only on the duration, every segment has its own job.
    const bool may_own = sequential_ || !varies() || is_remnant(*next->segment);
    if (!next->owner && !may_own) return false;
    // A remnant always belongs to the job before it, whichever job arrives first.
    if (!next->owner && job->target && is_remnant(*next->segment)) next->owner = job->target;
    const bool absorbs = job->target && next->owner != job->target;
    if (absorbs && !may_absorb(*job)) return false;
    ++job->segment;
    job->encoder->sample = 0;
    drop_used_segments();
    return true;
}

bool ParallelScheduler::take_or_compare(const std::shared_ptr<EncodingJob>& job, Entry& here,
                                        int margin) {
    if (job->is_repair && here.owner && std::ranges::find(jobs_, here.owner) == jobs_.end()) {
        // All frames of that job have been taken, so there is nothing left to agree with.
        set_target(*job, nullptr);
        return true;
    }
    if (!here.owner || here.owner->abandoned) {
        here.owner = job;
    }
    if (here.owner == job) {
        set_target(*job, nullptr);
        return true;
    }
    const EncodingJob& target = *here.owner;
    if (!target.encoder) return false;
    set_target(*job, here.owner);
    // How far the target happens to be beyond this segment must not affect the comparison.
    if (varies())
        job->encoder->compare_until(here.segment->first_frame() +
                                    here.segment->samples() /
                                        shape_of(options_.encoder).frame_samples());
    return target.done || target.passed_segment >= job->segment ||
           target.encoder->states().end() >=
               job->encoder->wanted_frames(frames_per_splice_step) + margin;
}

// Every encoder that has received the whole segment has emitted the frames before this one.
std::int64_t ParallelScheduler::certain_end(const Segment& segment) const {
    const StreamShape shape = shape_of(options_.encoder);
    return segment.first_frame() + segment.samples() / shape.frame_samples() -
           Reservoir(shape).late_frames();
}

void ParallelScheduler::set_target(EncodingJob& job, std::shared_ptr<EncodingJob> target) {
    if (job.target == target) return;
    job.encoder->compare_with(target ? target->encoder.get() : nullptr);
    // As long as a repair may be abandoned, it must not change other jobs.
    const bool may_absorb = !job.is_repair || job.proven;
    if (job.target && !sequential_ && may_absorb) {
        abandon(job.target);
        ++absorbed_segments_;
    }
    job.target = std::move(target);
}

void ParallelScheduler::abandon(const std::shared_ptr<EncodingJob>& job) {
    job->abandoned = true;
    std::erase(jobs_, job);
}

bool ParallelScheduler::finish_step(const std::shared_ptr<EncodingJob>& job, const Segment& segment,
                                    bool flushed) {
    if (stop_ || job->abandoned) return leave_locked(*job);
    const bool at_end = job->encoder->sample >= segment.samples();
    if (at_end) {
        job->passed_segment = segment.number();
        changed_.notify_all();
    }
    if (flushed) {
        set_target(*job, nullptr);
        job->done = true;
        return leave_locked(*job);
    }
    if (job->target && !sequential_) {
        job->seam = job->encoder->seam();
        if (job->seam) {
            job->awaits_check = true;
            return leave_locked(*job);
        }
        job->awaits_target = job->encoder->proposes_seam();
        if (job->awaits_target) return leave_locked(*job);
    }
    settle_seams(job.get());
    return true;
}

bool ParallelScheduler::leave_locked(EncodingJob& job) {
    job.claimed = false;
    settle_seams(nullptr);
    changed_.notify_all();
    return false;
}

// `idle`: a claimed job whose worker waits for this.
void ParallelScheduler::settle_seams(const EncodingJob* idle) {
    for (const auto& job : jobs_) {
        if (job->awaits_target) settle_seam(*job, idle);
        if (!job->done) return;  // The jobs after it may still be absorbed.
    }
}

// Accepts or refuses the proposed seam of a job with a confirmed start, unless that depends on what
// its target does at the moment.
void ParallelScheduler::settle_seam(EncodingJob& job, const EncodingJob* idle) {
    SegmentEncoder& target = *job.target->encoder;
    const auto then = target.states().before(job.encoder->states().end());
    const GainSearches given = job.encoder->searches();
    if (then->searches != given) {
        if (job.target->claimed && job.target.get() != idle) return;
        if (!job.encoder->seam_still_holds()) {
            job.awaits_target = false;
            job.encoder->refuse_seam();
            return;
        }
        for (std::size_t i = 0; i < given.size(); ++i) {
            if (then->searches[i] != given[i]) target.set_search(i, given[i]);
        }
    }
    job.awaits_target = false;
    if (Result<void> accepted = job.encoder->accept_seam(); !accepted) {
        fail_locked(accepted.error());
        return;
    }
    job.seam = job.encoder->seam();
    job.done = true;
}

bool ParallelScheduler::fail_step(EncodingJob& job, Error error) {
    fail(std::move(error));
    const Lock lock(mutex_);
    return leave_locked(job);
}

void ParallelScheduler::drop_used_segments() {
    std::int64_t first_needed = first_segment_ + static_cast<std::int64_t>(segments_.size());
    for (const auto& job : jobs_) first_needed = std::min(first_needed, job->segment);
    const Entry* needed = entry(first_needed);
    if (needed == nullptr) return;
    std::int64_t first_frame = needed->segment->first_frame();
    if (varies()) {
        const EncodingJob& current = *jobs_.front();
        if (current.encoder) first_frame = std::min(first_frame, current.encoder->frames().begin());
        first_frame -= frames_kept_for_repairs;
    }
    // The first remaining segment begins where the removed one ended.
    while (first_segment_ < first_needed && segments_.size() > 1 &&
           segments_[1].segment->first_frame() <= first_frame) {
        segments_.pop_front();
        ++first_segment_;
    }
}

// Functions for the stitcher: whose frames to take, and until when.

std::shared_ptr<EncodingJob> ParallelScheduler::current() const {
    const Lock lock(mutex_);
    return jobs_.empty() || !jobs_.front()->encoder ? nullptr : jobs_.front();
}

ParallelScheduler::JobStatus ParallelScheduler::status(const EncodingJob& job) const {
    const Lock lock(mutex_);
    return {.done = job.done, .awaits_check = job.awaits_check, .seam = job.seam};
}

std::optional<ParallelScheduler::SeamCheck> ParallelScheduler::pending_seam_check() {
    const Lock lock(mutex_);
    const EncodingJob& job = *jobs_.front();
    if (!job.awaits_check) return std::nullopt;
    const EncodingJob& target = *job.target;
    if (!target.done && target.passed_segment < job.segment) return std::nullopt;
    return SeamCheck{.target = job.target, .end_frame = certain_end(*entry(job.segment)->segment)};
}

void ParallelScheduler::accept_seam() {
    const Lock lock(mutex_);
    jobs_.front()->awaits_check = false;
    jobs_.front()->done = true;
    changed_.notify_all();
}

void ParallelScheduler::hold_until(std::int64_t number) {
    const Lock lock(mutex_);
    EncodingJob& job = *jobs_.front();
    job.awaits_check = false;
    job.seam.reset();
    job.encoder->join_from(number);
    changed_.notify_all();
}

std::shared_ptr<EncodingJob> ParallelScheduler::begin_repair(std::int64_t first_frame,
                                                             std::int64_t empty_before,
                                                             std::int64_t number) {
    const Lock lock(mutex_);
    const auto behind = std::ranges::find_if(segments_, [first_frame](const Entry& each) {
        return each.segment->first_frame() > first_frame;
    });
    if (behind == segments_.begin()) return nullptr;
    const Segment& segment = *std::prev(behind)->segment;
    auto job = std::make_shared<EncodingJob>();
    job->segment = segment.number();
    job->start = {.frames = static_cast<int>(first_frame - segment.first_frame()),
                  .empty_before = empty_before};
    job->is_repair = true;
    repair_hold_ = number;
    jobs_.push_front(job);
    changed_.notify_all();
    return job;
}

void ParallelScheduler::abandon_until(const std::shared_ptr<EncodingJob>& target) {
    while (!jobs_.empty() && jobs_.front() != target) {
        jobs_.front()->abandoned = true;
        jobs_.pop_front();
    }
}

void ParallelScheduler::confirm_repair() {
    const Lock lock(mutex_);
    const std::shared_ptr<EncodingJob> repair = jobs_.front();
    repair->proven = true;
    const bool is_last = repair->done && !repair->seam;
    if (!repair->target && !is_last) return;
    jobs_.pop_front();
    abandon_until(repair->target);
    jobs_.push_front(repair);
    changed_.notify_all();
}

void ParallelScheduler::abandon_repair() {
    const Lock lock(mutex_);
    retired_ = jobs_.front()->target;
    jobs_.front()->abandoned = true;
    jobs_.pop_front();
    changed_.notify_all();
}

void ParallelScheduler::advance_to_target() {
    const Lock lock(mutex_);
    // Finished jobs compare no more. If they held references to each other, all would stay in
    // memory until the end.
    const std::shared_ptr<EncodingJob> next = std::move(jobs_.front()->target);
    jobs_.front()->target = nullptr;
    jobs_.pop_front();
    abandon_until(next);
    drop_used_segments();
    changed_.notify_all();
}

void ParallelScheduler::make_sequential() {
    const Lock lock(mutex_);
    sequential_ = true;
    const std::shared_ptr<EncodingJob> only = jobs_.front();
    for (; jobs_.size() > 1; jobs_.pop_back()) jobs_.back()->abandoned = true;
    for (Entry& each : segments_) {
        if (each.owner != only && each.segment->number() > only->passed_segment) {
            each.owner = nullptr;
        }
    }
    retired_ = std::move(only->target);
    only->target = nullptr;
    only->encoder->compare_with(nullptr);
    only->seam.reset();
    only->done = false;
    only->awaits_check = false;
    changed_.notify_all();
}

int ParallelScheduler::unstarted_segments() const {
    const Lock lock(mutex_);
    if (sequential_) return 0;
    return static_cast<int>(std::ranges::count_if(segments_, [this](const Entry& each) {
        return !each.owner && !is_remnant(*each.segment);
    }));
}

int ParallelScheduler::unfinished_segments() const {
    const Lock lock(mutex_);
    std::int64_t first = first_segment_;
    if (!jobs_.empty())
        first = (*std::ranges::min_element(jobs_, {}, [](const auto& job) {
                    return job->segment;
                }))->segment;
    return static_cast<int>(first_segment_ + static_cast<std::int64_t>(segments_.size()) - first);
}

int ParallelScheduler::absorbed_segments() const {
    const Lock lock(mutex_);
    return absorbed_segments_;
}

std::int64_t ParallelScheduler::unusable_samples() const {
    const Lock lock(mutex_);
    return unusable_samples_;
}

void ParallelScheduler::fail(Error error) {
    const Lock lock(mutex_);
    fail_locked(std::move(error));
}

void ParallelScheduler::fail_locked(Error error) {
    if (!failure_) failure_ = std::move(error);
    stop_ = true;
    changed_.notify_all();
}

std::optional<Error> ParallelScheduler::failure() const {
    const Lock lock(mutex_);
    return failure_;
}

// Management of helper threads: which ones work, and what they wait for.

void ParallelScheduler::expect_helper() {
    const Lock lock(mutex_);
    ++expected_helpers_;
}

void ParallelScheduler::forget_expected_helpers() {
    const Lock lock(mutex_);
    expected_helpers_ = 0;
}

void ParallelScheduler::run_helper() {
    {
        const Lock lock(mutex_);
        expected_helpers_ = std::max(0, expected_helpers_ - 1);
        ++active_helpers_;
    }
    try {
        while (const std::shared_ptr<EncodingJob> job = claim(true)) {
            while (step(job)) {
            }
        }
    } catch (const std::bad_alloc&) {
        fail({.code = ErrorCode::out_of_memory,
              .message = "not enough memory to encode in parallel"});
    } catch (const std::exception& unexpected) {
        fail({.code = ErrorCode::internal, .message = unexpected.what()});
    }
    const Lock lock(mutex_);
    --active_helpers_;
    changed_.notify_all();
}

int ParallelScheduler::helpers() const {
    const Lock lock(mutex_);
    return active_helpers_ + expected_helpers_;
}

int ParallelScheduler::expected_helpers() const {
    const Lock lock(mutex_);
    return expected_helpers_;
}

void ParallelScheduler::wait_for_change(int timeout_ms) {
    Lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms));
}

void ParallelScheduler::wait_for_helpers() {
    Lock lock(mutex_);
    changed_.wait(lock, [this] { return active_helpers_ == 0; });
}

}  // namespace polymux::media::mp3
