// One encoder's way through a file: first its own segments, then across the boundary into those of
// the next encoder, until both have the same state.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "media/mp3/coded_frame.hpp"
#include "media/mp3/frame_queue.hpp"
#include "media/mp3/segment.hpp"
#include "media/mp3/state_log.hpp"
#include "polymux/media/mp3/encoder.hpp"
#include "polymux/result.hpp"

namespace polymux::media::mp3 {

/// Start of an encoder that does not begin with the first frame of a segment.
struct EncodingStart {
    int frames = 0;  ///< Frames of the segment to skip.
    /// Number of the frame before which to empty the reservoir.
    std::optional<std::int64_t> empty_before = {};
};

/// Modified by one thread at a time, which can change. All threads may read `frames` and `states`.
class SegmentEncoder {
public:
    /// Begins with `segment`.
    SegmentEncoder(std::unique_ptr<Encoder> encoder, const EncoderSettings& settings,
                   const Segment& segment, const EncodingStart& start = {});

    /// Encodes up to `frames` frames of `segment`, from the current position, until `stop` or until
    /// there is a seam. Returns the number of samples.
    Result<int> encode(const Segment& segment, int frames, const std::atomic<bool>& stop);
    /// Ends the file: emits the encoder's last frames.
    Result<void> flush();

    /// Compares the state with that of `other` after every frame from now on.
    void compare_with(const SegmentEncoder* other) noexcept;
    /// At a constant bitrate, a seam is proposed first: the states are equal, except for the
    /// searches of channels that the other encoder has not searched since. Encoding stops here
    /// until one of the functions accept_seam and refuse_seam is called.
    [[nodiscard]] bool proposes_seam() const noexcept { return proposes_seam_; }
    /// Whether the other encoder still has not searched these channels. It must not be encoding.
    [[nodiscard]] bool seam_still_holds() const;
    /// The other encoder has the searches of this one.
    Result<void> accept_seam();
    /// The other encoder cannot take over the searches: from now on they must be equal, too.
    void refuse_seam() noexcept;
    [[nodiscard]] GainSearches searches() const noexcept { return encoder_->searches(); }
    /// Call if the channel has not been searched since the seam.
    void set_search(std::size_t channel, GainSearch search);

    /// Excludes the states before frame `frame` and later ones from the comparison.
    void compare_until(std::int64_t frame) noexcept { compare_end_ = frame; }
    /// Allows a seam only at frame `frame` or later.
    void join_from(std::int64_t frame) noexcept { join_from_ = frame; }
    /// The frame from which on the other encoder codes the same. All earlier frames are emitted.
    [[nodiscard]] std::optional<std::int64_t> seam() const;
    /// How far the other encoder must be before this one continues.
    [[nodiscard]] std::int64_t wanted_frames(int frames) const { return states_.end() + frames; }

    [[nodiscard]] std::int64_t unusable_samples() const noexcept {
        return encoder_->unusable_samples();
    }
    [[nodiscard]] const FrameQueue& frames() const noexcept { return frames_; }
    [[nodiscard]] FrameQueue& frames() noexcept { return frames_; }
    [[nodiscard]] const StateLog& states() const noexcept { return states_; }

    /// Position: the next sample of the current segment.
    int sample = 0;

private:
    Result<void> empty_reservoir();
    Result<void> accept(std::span<const std::byte> bytes);
    void follow_states();
    void compare(std::int64_t number, const EncoderState& state);
    [[nodiscard]] bool can_follow(const EncoderState& own, const EncoderState& theirs,
                                  const GainSearches& newest) const;

    std::unique_ptr<Encoder> encoder_;
    FrameSplitter splitter_;
    RateControl rate_control_;
    int frame_samples_;
    std::int64_t first_frame_;
    FrameQueue frames_;
    StateLog states_;
    std::optional<std::int64_t> empty_before_;
    const SegmentEncoder* other_ = nullptr;
    std::int64_t compare_end_ = std::numeric_limits<std::int64_t>::max();
    std::optional<std::int64_t> equal_from_;  // The states before this and all later frames agree.
    std::int64_t join_from_ = 0;
    bool proposes_seam_ = false;
    bool searches_must_be_equal_ = false;
};

}  // namespace polymux::media::mp3
