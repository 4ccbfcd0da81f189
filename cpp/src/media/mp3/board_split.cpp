// How the board shares the last work out, so that all workers end at about the same time.
#include <algorithm>
#include <memory>

#include "media/mp3/board.hpp"
#include "media/mp3/segment_plan.hpp"

namespace polymux::media::mp3 {

namespace {

// Frames that both sides of a seam encode, and what is worth one.
constexpr int seam_frames = 70;
constexpr int shortest_split_frames = 470;

}  // namespace

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

}  // namespace polymux::media::mp3
