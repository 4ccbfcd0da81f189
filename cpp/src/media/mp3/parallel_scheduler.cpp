#include "media/mp3/parallel_scheduler.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <memory>
#include <new>

#include "media/mp3/segment_plan.hpp"

namespace polymux::media::mp3 {

namespace {

// A few milliseconds of work each, so that a cancelled conversion ends at once.
constexpr int frames_per_step = 8;
constexpr int frames_per_splice_step = 4;
// A run that had to wait for another goes on when that one is well ahead.
constexpr int resume_margin_frames = 100;
// A last segment shorter than this would not live to see an agreement.
constexpr int shortest_last_frames = 150;
// A repair has to begin up to that many frames before the run that it is for.
constexpr std::int64_t frames_kept_for_repairs = 730;
// Frames that both sides of a seam encode, and what is worth one.
constexpr int seam_frames = 70;
constexpr int shortest_split_frames = 470;

}  // namespace

Board::Board(BoardOptions options, std::unique_ptr<Encoder> first_encoder)
    : options_(std::move(options)), first_encoder_(std::move(first_encoder)) {}

void Board::add(std::shared_ptr<Segment> segment) {
    const Lock lock(mutex_);
    // Whoever has cut it does not know how many of those before it have been shared since.
    segment->set_number(first_segment_ + static_cast<std::int64_t>(segments_.size()));
    segments_.push_back({.segment = std::move(segment)});
    changed_.notify_all();
}

Board::Entry* Board::entry(std::int64_t segment) {
    const std::int64_t index = segment - first_segment_;
    if (index < 0 || index >= static_cast<std::int64_t>(segments_.size())) return nullptr;
    return &segments_[static_cast<std::size_t>(index)];
}

// Whether a segment is too short to be begun by a run of its own.
bool Board::is_remnant(const Segment& segment) const {
    const int shortest = shortest_last_frames * shape_of(options_.encoder).frame_samples();
    return segment.last() && segment.samples() < shortest;
}

// Absorbing another run is for those whose own beginning is certain: the result does not depend on
// who is faster then.
bool Board::is_confirmed(const RunJob& job) const {
    for (const auto& earlier : runs_) {
        if (earlier.get() == &job) return true;
        if (!earlier->done) return false;
    }
    return false;
}

// At other rate controls than a constant one a repair may begin among all frames that have not been
// taken, and would find other runs to compare itself with if some were absorbed already. It does
// not depend on who is faster when the stitcher has all frames before.
bool Board::may_absorb(const RunJob& job) const {
    if (!is_confirmed(job)) return false;
    const bool leaves_all = job.is_repair && !job.proven;
    if (!varies() || leaves_all) return true;
    const PublishedFrames& frames = job.run->frames();
    return runs_.front().get() == &job && frames.begin() == frames.end();
}

bool Board::must_verify(const RunJob& job) const {
    if (options_.verify == Verify::all) return true;
    return options_.verify == Verify::first_seam && job.is_first;
}

std::shared_ptr<RunJob> Board::claim(bool may_start) {
    const Lock lock(mutex_);
    if (stop_) return nullptr;
    const auto runs = runs_;  // Some may be found to be absorbed on the way.
    for (const auto& job : runs) {
        if (job->claimed || job->done || job->asking || job->abandoned ||
            !prepare(job, resume_margin_frames))
            continue;
        job->claimed = true;
        return job;
    }
    if (!may_start || sequential_) return nullptr;
    std::shared_ptr<RunJob> begun = begin_job();
    if (!begun && split_segment()) begun = begin_job();
    return begun;
}

// At the earliest segment that nobody has begun.
std::shared_ptr<RunJob> Board::begin_job() {
    for (std::size_t index = 0; index < segments_.size(); ++index) {
        Entry& free = segments_[index];
        const bool is_first = runs_.empty() && index == 0;
        if (free.owner || (!is_first && is_remnant(*free.segment))) continue;
        auto job = std::make_shared<RunJob>();
        job->segment = free.segment->number();
        job->claimed = true;
        job->is_first = is_first;
        free.owner = job;
        // No run stands behind a segment that nobody has begun, but for those begun behind it.
        const auto behind = std::ranges::find_if(
            runs_, [&job](const auto& other) { return other->segment > job->segment; });
        runs_.insert(behind, job);
        return job;
    }
    return nullptr;
}

// At a constant bitrate seams may be anywhere: a worker that has nothing left to do takes half of
// what another has still before it.
bool Board::split_segment() {
    if (varies()) return false;
    const int frame_samples = shape_of(options_.encoder).frame_samples();
    std::size_t longest = segments_.size();
    int most_left = shortest_split_frames;
    for (std::size_t index = 0; index < segments_.size(); ++index) {
        const Entry& each = segments_[index];
        const int left = (each.segment->samples() - each.credited_samples) / frame_samples;
        if (left < most_left || !is_in_work_alone(each)) continue;
        most_left = left;
        longest = index;
    }
    if (longest == segments_.size()) return false;
    Entry& entry = segments_[longest];
    const int period = padding_period(options_.encoder);
    // The run there has the seam to do as well.
    const int cut = entry.credited_samples / frame_samples + (most_left + seam_frames) / 2;
    const int begin_frames = (cut + period - 1) / period * period;
    const std::int64_t first_frame = entry.segment->first_frame() + begin_frames;
    auto rest = std::make_shared<Segment>(entry.segment, begin_frames * frame_samples, first_frame);
    entry.segment->cut(begin_frames * frame_samples);
    const std::int64_t number = entry.segment->number();
    for (std::size_t index = longest + 1; index < segments_.size(); ++index) {
        segments_[index].segment->renumber();
    }
    for (const auto& job : runs_) {
        if (job->segment > number) ++job->segment;
        if (job->passed_segment > number) ++job->passed_segment;
    }
    segments_.insert(segments_.begin() + static_cast<std::ptrdiff_t>(longest) + 1,
                     {.segment = std::move(rest)});
    return true;
}

// Its own run is the only one that stands there, and not at the end.
bool Board::is_in_work_alone(const Entry& entry) const {
    const RunJob* owner = entry.owner.get();
    if (owner == nullptr || !owner->run || !owner->claimed || entry.closed) return false;
    const std::int64_t number = entry.segment->number();
    if (owner->segment != number || owner->passed_segment >= number) return false;
    return std::ranges::none_of(runs_, [owner, number](const auto& job) {
        return job.get() != owner && !job->done && job->segment == number;
    });
}

bool Board::step(const std::shared_ptr<RunJob>& job) {
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
    if (!job->run) {
        if (Result<void> begun = begin_run(*job, *segment); !begun) {
            return fail_step(*job, begun.error());
        }
    }
    Run& run = *job->run;
    const std::int64_t unusable_before = run.unusable_samples();
    Result<int> samples =
        run.encode(*segment, splicing ? frames_per_splice_step : frames_per_step, stop_);
    if (!samples) return fail_step(*job, samples.error());
    bool flushing = false;
    {
        // What is closed cannot be cut any more.
        const Lock lock(mutex_);
        const bool at_end = run.sample >= segment->samples();
        flushing = at_end && segment->last() && (!splicing || *samples == 0);
        if (Entry* here = entry(segment->number()); at_end && here != nullptr) here->closed = true;
    }
    if (flushing) {
        if (Result<void> flushed = run.flush(); !flushed) return fail_step(*job, flushed.error());
    }
    const Lock lock(mutex_);
    Entry* const here = entry(segment->number());
    if (here != nullptr && owns && run.sample > here->credited_samples) {
        encoded_samples_ += run.sample - here->credited_samples;
        unusable_samples_ += run.unusable_samples() - unusable_before;
        here->credited_samples = run.sample;
    }
    return finish_step(job, *segment, flushing);
}

Result<void> Board::begin_run(RunJob& job, const Segment& segment) {
    // The board's own until the first segment's run takes it.
    const bool is_first = segment.number() == 0 && !job.is_repair && first_encoder_ != nullptr;
    std::unique_ptr<Encoder> encoder;
    if (is_first) {
        encoder = std::move(first_encoder_);
    } else {
        Result<std::unique_ptr<Encoder>> created = create_lame_encoder(options_.encoder);
        if (!created) return created.error();
        encoder = std::move(*created);
    }
    auto run =
        std::make_unique<Run>(std::move(encoder), options_.encoder, segment, is_first, job.start);
    const Lock lock(mutex_);
    if (job.is_repair) run->agree_from(hold_);
    job.run = std::move(run);
    return {};
}

// Brings a run that nobody else works on to its next samples, if there are any for it. True when
// there is something to do: samples to encode, or the end of the file.
bool Board::prepare(const std::shared_ptr<RunJob>& job, int margin) {
    Entry* here = entry(job->segment);
    if (here == nullptr) return false;
    if (!job->run) return true;
    if (job->run->sample >= here->segment->samples()) {
        if (here->segment->last()) return here->owner == job || may_absorb(*job);
        if (!enter_next_segment(job)) return false;
        here = entry(job->segment);
    }
    return own_or_compare(job, *here, margin);
}

bool Board::enter_next_segment(const std::shared_ptr<RunJob>& job) {
    Entry* next = entry(job->segment + 1);
    if (next == nullptr) return false;
    // Where seams follow from the duration alone, every segment has its own run.
    const bool may_own = sequential_ || !varies() || is_remnant(*next->segment);
    if (!next->owner && !may_own) return false;
    // A remnant belongs to the run before it, whoever comes first.
    if (!next->owner && job->target && is_remnant(*next->segment)) next->owner = job->target;
    const bool absorbs = job->target && next->owner != job->target;
    if (absorbs && !may_absorb(*job)) return false;
    ++job->segment;
    job->run->sample = 0;
    drop_used_segments();
    return true;
}

bool Board::own_or_compare(const std::shared_ptr<RunJob>& job, Entry& here, int margin) {
    if (job->is_repair && here.owner && std::ranges::find(runs_, here.owner) == runs_.end()) {
        // The frames of that run have all been taken: there is nothing to agree on yet.
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
    const RunJob& target = *here.owner;
    if (!target.run) return false;
    set_target(*job, here.owner);
    // How far the target happens to have gone on behind this segment must not decide what is
    // compared.
    if (varies()) job->run->compare_until(certain_end(*here.segment));
    return target.done || target.passed_segment >= job->segment ||
           target.run->frames().end() >= job->run->wanted_frames() + margin;
}

// Frames before this one have come out of every encoder that has been given the whole segment.
std::int64_t Board::certain_end(const Segment& segment) const {
    const StreamShape shape = shape_of(options_.encoder);
    return segment.first_frame() + segment.samples() / shape.frame_samples() -
           Reservoir(shape).late_frames();
}

void Board::set_target(RunJob& job, std::shared_ptr<RunJob> target) {
    if (job.target == target) return;
    job.run->compare_with(target ? target->run.get() : nullptr);
    // As long as a repair may be given up, it must leave all others as they are.
    const bool may_absorb = !job.is_repair || job.proven;
    if (job.target && !sequential_ && may_absorb) {
        abandon(job.target);
        ++absorbed_segments_;
    }
    job.target = std::move(target);
}

void Board::abandon(const std::shared_ptr<RunJob>& job) {
    job->abandoned = true;
    std::erase(runs_, job);
}

bool Board::finish_step(const std::shared_ptr<RunJob>& job, const Segment& segment, bool flushed) {
    if (stop_ || job->abandoned) return leave_locked(*job);
    const bool at_end = job->run->sample >= segment.samples();
    if (at_end) {
        job->passed_segment = segment.number();
        changed_.notify_all();
    }
    if (flushed) {
        set_target(*job, nullptr);
        job->done = true;
        return leave_locked(*job);
    }
    if (job->target && !sequential_ && (at_end || !must_verify(*job))) {
        job->seam = job->run->agreement(agreement_frames);
        // The stitcher takes what is published while it does not know of the seam. Where the answer
        // depends on the frame that comes next, that must be the same one always.
        if (job->seam && varies()) job->seam = job->run->frames().end();
        if (job->seam) {
            job->asking = true;
            if (!varies()) accept_locked(*job);
            return leave_locked(*job);
        }
    }
    return true;
}

bool Board::leave_locked(RunJob& job) {
    job.claimed = false;
    changed_.notify_all();
    return false;
}

bool Board::fail_step(RunJob& job, Error error) {
    fail(std::move(error));
    const Lock lock(mutex_);
    return leave_locked(job);
}

void Board::drop_used_segments() {
    std::int64_t first_needed = first_segment_ + static_cast<std::int64_t>(segments_.size());
    for (const auto& job : runs_) first_needed = std::min(first_needed, job->segment);
    const Entry* needed = entry(first_needed);
    if (needed == nullptr) return;
    std::int64_t first_frame = needed->segment->first_frame();
    if (varies()) {
        const RunJob& current = *runs_.front();
        if (current.run) first_frame = std::min(first_frame, current.run->frames().begin());
        first_frame -= frames_kept_for_repairs;
    }
    // The segment behind the first one begins where that one ends.
    while (first_segment_ < first_needed && segments_.size() > 1 &&
           segments_[1].segment->first_frame() <= first_frame) {
        segments_.pop_front();
        ++first_segment_;
    }
}

// What the stitcher asks for: whose frames are the true ones, and until when.

std::shared_ptr<RunJob> Board::current() const {
    const Lock lock(mutex_);
    return runs_.empty() || !runs_.front()->run ? nullptr : runs_.front();
}

Board::Standing Board::standing(const RunJob& job) const {
    const Lock lock(mutex_);
    return {.done = job.done, .asking = job.asking, .seam = job.seam};
}

std::optional<Board::Question> Board::question() {
    const Lock lock(mutex_);
    const RunJob& job = *runs_.front();
    if (!job.asking) return std::nullopt;
    const RunJob& target = *job.target;
    if (!target.done && target.passed_segment < job.segment) return std::nullopt;
    return Question{.target = job.target, .end_frame = certain_end(*entry(job.segment)->segment)};
}

void Board::accept() {
    const Lock lock(mutex_);
    accept_locked(*runs_.front());
    changed_.notify_all();
}

void Board::accept_locked(RunJob& job) {
    parted_frames_ += job.run->parted_frames();
    job.asking = false;
    job.done = true;
}

void Board::hold(std::int64_t number) {
    const Lock lock(mutex_);
    RunJob& job = *runs_.front();
    job.asking = false;
    job.seam.reset();
    job.run->agree_from(number);
    changed_.notify_all();
}

std::shared_ptr<RunJob> Board::begin_repair(std::int64_t first_frame, std::int64_t empty_before,
                                            std::int64_t number) {
    const Lock lock(mutex_);
    const auto behind = std::ranges::find_if(segments_, [first_frame](const Entry& each) {
        return each.segment->first_frame() > first_frame;
    });
    if (behind == segments_.begin()) return nullptr;
    const Segment& segment = *std::prev(behind)->segment;
    auto job = std::make_shared<RunJob>();
    job->segment = segment.number();
    job->start = {.frames = static_cast<int>(first_frame - segment.first_frame()),
                  .empty_before = empty_before};
    job->is_repair = true;
    hold_ = number;
    runs_.push_front(job);
    changed_.notify_all();
    return job;
}

void Board::abandon_until(const std::shared_ptr<RunJob>& target) {
    while (!runs_.empty() && runs_.front() != target) {
        runs_.front()->abandoned = true;
        runs_.pop_front();
    }
}

void Board::confirm_repair() {
    const Lock lock(mutex_);
    const std::shared_ptr<RunJob> repair = runs_.front();
    repair->proven = true;
    const bool is_last = repair->done && !repair->seam;
    if (!repair->target && !is_last) return;
    runs_.pop_front();
    abandon_until(repair->target);
    runs_.push_front(repair);
    changed_.notify_all();
}

void Board::abandon_repair() {
    const Lock lock(mutex_);
    retired_ = runs_.front()->target;
    runs_.front()->abandoned = true;
    runs_.pop_front();
    changed_.notify_all();
}

void Board::advance() {
    const Lock lock(mutex_);
    // Done runs compare no more; holding on to each other they would all stay till the end.
    const std::shared_ptr<RunJob> next = std::move(runs_.front()->target);
    runs_.front()->target = nullptr;
    runs_.pop_front();
    abandon_until(next);
    drop_used_segments();
    changed_.notify_all();
}

void Board::make_sequential() {
    const Lock lock(mutex_);
    sequential_ = true;
    const std::shared_ptr<RunJob> only = runs_.front();
    for (; runs_.size() > 1; runs_.pop_back()) runs_.back()->abandoned = true;
    for (Entry& each : segments_) {
        if (each.owner != only && each.segment->number() > only->passed_segment) {
            each.owner = nullptr;
        }
    }
    retired_ = std::move(only->target);
    only->target = nullptr;
    only->seam.reset();
    only->done = false;
    only->asking = false;
    changed_.notify_all();
}

int Board::unstarted_segments() const {
    const Lock lock(mutex_);
    if (sequential_) return 0;
    return static_cast<int>(std::ranges::count_if(segments_, [this](const Entry& each) {
        return !each.owner && !is_remnant(*each.segment);
    }));
}

int Board::unfinished_segments() const {
    const Lock lock(mutex_);
    std::int64_t first = first_segment_;
    if (!runs_.empty())
        first = (*std::ranges::min_element(runs_, {}, [](const auto& job) {
                    return job->segment;
                }))->segment;
    return static_cast<int>(first_segment_ + static_cast<std::int64_t>(segments_.size()) - first);
}

int Board::absorbed_segments() const {
    const Lock lock(mutex_);
    return absorbed_segments_;
}

std::int64_t Board::parted_frames() const {
    const Lock lock(mutex_);
    return parted_frames_;
}

std::int64_t Board::unusable_samples() const {
    const Lock lock(mutex_);
    return unusable_samples_;
}

void Board::fail(Error error) {
    const Lock lock(mutex_);
    if (!failure_) failure_ = std::move(error);
    stop_ = true;
    changed_.notify_all();
}

std::optional<Error> Board::failure() const {
    const Lock lock(mutex_);
    return failure_;
}

// The threads that help: who is there, and who waits for what.

void Board::expect_helper() {
    const Lock lock(mutex_);
    ++expected_helpers_;
}

void Board::forget_expected_helpers() {
    const Lock lock(mutex_);
    expected_helpers_ = 0;
}

void Board::help() {
    {
        const Lock lock(mutex_);
        expected_helpers_ = std::max(0, expected_helpers_ - 1);
        ++active_helpers_;
    }
    try {
        while (const std::shared_ptr<RunJob> job = claim(true)) {
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

int Board::helpers() const {
    const Lock lock(mutex_);
    return active_helpers_ + expected_helpers_;
}

int Board::expected_helpers() const {
    const Lock lock(mutex_);
    return expected_helpers_;
}

void Board::wait_for_change(int timeout_ms) {
    Lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms));
}

void Board::wait_for_helpers() {
    Lock lock(mutex_);
    changed_.wait(lock, [this] { return active_helpers_ == 0; });
}

}  // namespace polymux::media::mp3
