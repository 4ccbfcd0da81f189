#include "media/mp3/stitcher.hpp"

#include <algorithm>

namespace polymux::media::mp3 {

Stitcher::Stitcher(Board& board, const StreamShape& shape, std::string encoder_version,
                   const Layouter::Options& options, FrameCallback write)
    : board_(board),
      layouter_(shape, std::move(encoder_version), options),
      write_(std::move(write)),
      from_layouter_([this](std::span<const std::byte> frame) { return check_and_write(frame); }) {}

Result<bool> Stitcher::stitch() {
    while (const std::shared_ptr<RunJob> job = board_.current()) {
        // Asked first: what is done has published all of its frames.
        const Board::Standing standing = board_.standing(*job);
        while (!standing.seam || next_frame_ < *standing.seam) {
            auto taken = job->run->frames().take();
            if (!taken) break;
            ++next_frame_;
            const bool was_sequential = sequential_;
            if (Result<void> added = add(std::move(*taken)); !added) return added.error();
            if (sequential_ != was_sequential) return false;
        }
        if (!standing.done) return false;
        if (!standing.seam) {
            if (Result<void> finished = finish(); !finished) return finished.error();
            return true;
        }
        board_.advance();
        board_.current()->run->frames().drop_before(next_frame_);
        own_frames_only_ = false;
        expected_.clear();
        ++seams_;
    }
    return false;
}

Result<void> Stitcher::add(PublishedFrames::Taken taken) {
    if (sequential_) return write_(taken.raw);
    if (own_frames_only_) {
        expected_.push_back(std::move(taken.raw));
        if (!taken.frame.follows_rules) return fall_back();
    }
    Result<void> added = layouter_.add(std::move(taken.frame), from_layouter_);
    const bool may_fall_back = differs_ || layouter_.stuck();
    return !added && own_frames_only_ && may_fall_back ? fall_back() : added;
}

Result<void> Stitcher::check_and_write(std::span<const std::byte> frame) {
    if (own_frames_only_) {
        differs_ = expected_.empty() || !std::ranges::equal(expected_.front(), frame);
        if (differs_) {
            return Error{.code = ErrorCode::encoder_failed,
                         .message = "this LAME lays its frames out in another way"};
        }
        expected_.pop_front();
    }
    return write_(frame);
}

Result<void> Stitcher::fall_back() {
    board_.make_sequential();
    sequential_ = true;
    for (const auto& frame : expected_) {
        if (Result<void> written = write_(frame); !written) return written;
    }
    expected_.clear();
    return {};
}

Result<void> Stitcher::finish() {
    if (sequential_) return {};
    Result<void> finished = layouter_.finish(from_layouter_);
    const bool may_fall_back = differs_ || layouter_.stuck() || !expected_.empty();
    return own_frames_only_ && may_fall_back ? fall_back() : finished;
}

}  // namespace polymux::media::mp3
