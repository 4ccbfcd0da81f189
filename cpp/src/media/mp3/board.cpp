#include "media/mp3/board.hpp"

#include <algorithm>

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

}  // namespace polymux::media::mp3
