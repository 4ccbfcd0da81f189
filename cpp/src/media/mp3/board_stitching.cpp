// The board's side towards the stitcher: whose frames are the true ones, and until when.
#include <algorithm>
#include <iterator>

#include "media/mp3/board.hpp"

namespace polymux::media::mp3 {

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

}  // namespace polymux::media::mp3
