#include "media/mp3/stitcher.hpp"

#include <algorithm>

namespace polymux::media::mp3 {

namespace {

// Frames after which what an encoder codes is free of what it coded before.
constexpr int memory_frames_vbr = 6;
constexpr int memory_frames_abr = 24;
// A repair takes some 150 frames; a shorter stretch is coded by the run that is there.
constexpr std::int64_t worth_leaving_frames = 400;
// Where every hundredth frame depends on the level, one encoder alone is the shortest way.
constexpr std::int64_t frames_per_bearable_doubt = 100;

}  // namespace

Stitcher::Stitcher(Board& board, const StreamShape& shape, std::string encoder_version,
                   const Layouter::Options& options, FrameCallback write)
    : board_(board),
      layouter_(shape, std::move(encoder_version), options),
      write_(std::move(write)),
      from_layouter_([this](std::span<const std::byte> frame) { return check_and_write(frame); }),
      truth_(shape),
      encoder_memory_frames_(shape.rate_control == RateControl::vbr ? memory_frames_vbr
                                                                    : memory_frames_abr) {}

Result<bool> Stitcher::stitch() {
    while (const std::shared_ptr<RunJob> job = board_.current()) {
        // Asked first: what is done has published all of its frames.
        const Board::Standing standing = board_.standing(*job);
        if (repairing_) {
            const Outcome outcome = check_repair(*job, standing);
            if (outcome == Outcome::waiting) return false;
            if (outcome == Outcome::changed) continue;
        }
        Result<Outcome> outcome = take_frames(*job, standing.seam);
        if (!outcome) return outcome.error();
        if (*outcome == Outcome::changed) continue;
        if (standing.asking && truth_.position() >= *standing.seam) {
            if (!answer()) return false;
            continue;
        }
        if (!standing.done) return false;
        if (!standing.seam) {
            if (Result<void> finished = finish(); !finished) return finished.error();
            return true;
        }
        leave_run();
    }
    return false;
}

/// Up to frame `end`, if there is one.
Result<Stitcher::Outcome> Stitcher::take_frames(RunJob& job, std::optional<std::int64_t> end) {
    PublishedFrames& frames = job.run->frames();
    while (!end || truth_.position() < *end) {
        const auto next = frames.outlines(truth_.position(), 1);
        if (next.empty()) break;
        // Those before have come from another run.
        frames.drop_before(truth_.position());
        const bool in_doubt = !sequential_ && !own_frames_only_ &&
                              truth_.position() >= accepted_until_ &&
                              truth_.is_doubtful(next.front());
        if (in_doubt && repair()) return Outcome::changed;
        auto taken = frames.take();
        level_is_true_ = next.front().level_bits == truth_.level_bits();
        truth_.pass(next.front());
        const bool was_sequential = sequential_;
        if (Result<void> added = add(std::move(*taken)); !added) return added.error();
        if (sequential_ != was_sequential) return Outcome::changed;
    }
    return Outcome::taken;
}

/// Begins a run that comes to the doubtful frame with the true level.
bool Stitcher::repair() {
    const std::int64_t number = truth_.position();
    const std::int64_t warm_up = encoder_memory_frames_;
    const auto restart = truth_.restart(warm_up);
    if (restart && board_.begin_repair(*restart - warm_up, *restart, number)) {
        repairing_ = true;
        ++repairs_;
        return true;
    }
    ++inexact_frames_;
    accepted_until_ = number + 1;
    return false;
}

/// The repair is good when it has the true level before the doubtful frame.
Stitcher::Outcome Stitcher::check_repair(RunJob& job, const Board::Standing& standing) {
    const auto frame = job.run->frames().outlines(truth_.position(), 1);
    if (frame.empty() && !standing.done) return Outcome::waiting;
    repairing_ = false;
    if (!frame.empty() && frame.front().level_bits == truth_.level_bits()) {
        board_.confirm_repair();
        return Outcome::taken;
    }
    ++inexact_frames_;
    accepted_until_ = truth_.position() + 1;
    board_.abandon_repair();
    return Outcome::changed;
}

/// May the current run be left? If its level is the true one, the next run's is not, and so none of
/// the frames that follow soon may depend on it. False while that cannot be known.
bool Stitcher::answer() {
    if (!level_is_true_) {
        board_.accept();
        return true;
    }
    const std::optional<Board::Question> question = board_.question();
    if (!question) return false;
    const std::int64_t first = truth_.position();
    const auto frames =
        question->target->run->frames().outlines(first, question->end_frame - first);
    const Truth::Doubts doubts = truth_.doubts(frames);
    const auto length = std::max(static_cast<std::int64_t>(frames.size()), worth_leaving_frames);
    if (!doubts.first || *doubts.first - first >= worth_leaving_frames) {
        board_.accept();
    } else if (doubts.count * frames_per_bearable_doubt > length) {
        board_.make_sequential();
    } else {
        board_.hold(*doubts.first + 1);
    }
    return true;
}

void Stitcher::leave_run() {
    board_.advance();
    own_frames_only_ = false;
    expected_.clear();
    ++seams_;
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
