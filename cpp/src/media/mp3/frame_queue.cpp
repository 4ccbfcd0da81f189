#include "media/mp3/frame_queue.hpp"

#include <algorithm>
#include <utility>

namespace polymux::media::mp3 {

void FrameQueue::publish(CodedFrame frame) {
    const std::scoped_lock lock(mutex_);
    frames_.push_back(std::move(frame));
    ++end_;
}

std::optional<CodedFrame> FrameQueue::take() {
    const std::scoped_lock lock(mutex_);
    if (frames_.empty()) return std::nullopt;
    std::optional<CodedFrame> taken(std::move(frames_.front()));
    frames_.pop_front();
    ++begin_;
    return taken;
}

std::vector<FrameOutline> FrameQueue::outlines(std::int64_t first, std::int64_t count) const {
    const std::scoped_lock lock(mutex_);
    std::vector<FrameOutline> found;
    const std::int64_t end = std::min(end_, first + count);
    for (std::int64_t number = std::max(first, begin_); number < end; ++number) {
        const CodedFrame& frame = frames_[static_cast<std::size_t>(number - begin_)];
        found.push_back({.bits = frame.main_data_bits,
                         .level_bits = frame.level_bits,
                         .size = frame.size,
                         .demand = frame.demand});
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

}  // namespace polymux::media::mp3
