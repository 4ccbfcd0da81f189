#include "media/mp3/frame_queue.hpp"

#include <algorithm>
#include <utility>

namespace polymux::media::mp3 {

void FrameQueue::publish(CodedFrame frame, std::vector<std::byte> raw) {
    const std::scoped_lock lock(mutex_);
    frames_.push_back({.frame = std::move(frame), .raw = std::move(raw)});
    ++end_;
}

std::optional<FrameQueue::Taken> FrameQueue::take() {
    const std::scoped_lock lock(mutex_);
    if (frames_.empty()) return std::nullopt;
    std::optional<Taken> taken(std::move(frames_.front()));
    frames_.pop_front();
    ++begin_;
    return taken;
}

std::vector<FrameOutline> FrameQueue::outlines(std::int64_t first, std::int64_t count) const {
    const std::scoped_lock lock(mutex_);
    std::vector<FrameOutline> found;
    const std::int64_t end = std::min(end_, first + count);
    for (std::int64_t number = std::max(first, begin_); number < end; ++number) {
        const CodedFrame& frame = frames_[static_cast<std::size_t>(number - begin_)].frame;
        found.push_back({.bits = frame.main_data_bits,
                         .largest_granule_bits = frame.largest_granule_bits,
                         .level_bits = frame.level_bits,
                         .size = frame.size,
                         .silent = frame.silent});
    }
    return found;
}

void FrameQueue::drop_before(std::int64_t frame) {
    const std::scoped_lock lock(mutex_);
    while (!frames_.empty() && begin_ < frame) {
        frames_.pop_front();
        ++begin_;
    }
}

std::int64_t FrameQueue::end() const {
    const std::scoped_lock lock(mutex_);
    return end_;
}

std::int64_t FrameQueue::begin() const {
    const std::scoped_lock lock(mutex_);
    return begin_;
}

std::optional<bool> FrameQueue::same_as(std::int64_t number, const CodedFrame& frame,
                                        RateControl rate_control) const {
    const std::scoped_lock lock(mutex_);
    if (number < begin_ || number >= end_) return std::nullopt;
    return same_content(frames_[static_cast<std::size_t>(number - begin_)].frame, frame,
                        rate_control);
}

}  // namespace polymux::media::mp3
