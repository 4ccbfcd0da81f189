// One encoder's way through a file: first its own segments, then across the boundary into those of
// the next encoder, until both agree.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "media/mp3/coded_frame.hpp"
#include "media/mp3/frame_queue.hpp"
#include "media/mp3/segment.hpp"
#include "polymux/media/mp3/encoder.hpp"
#include "polymux/result.hpp"

namespace polymux::media::mp3 {

/// Start of an encoder that does not begin with the first frame of a segment.
struct EncodingStart {
    int frames = 0;  ///< Frames of the segment to skip.
    /// Number of the frame before which to empty the reservoir.
    std::optional<std::int64_t> empty_before = {};
};

/// Modified by one thread at a time, which can change. All threads may read `frames`.
class SegmentEncoder {
public:
    /// Begins with `segment`. `keep_raw`: also publish the encoder's original bytes.
    SegmentEncoder(std::unique_ptr<Encoder> encoder, const EncoderSettings& settings,
                   const Segment& segment, bool keep_raw, const EncodingStart& start = {});

    /// Encodes up to `frames` frames of `segment`, from the current position, until `stop`. Returns
    /// the number of samples.
    Result<int> encode(const Segment& segment, int frames, const std::atomic<bool>& stop);
    /// Ends the file: emits the encoder's last frames.
    Result<void> flush();

    /// Compares every frame from now on with the frame of the same number in `other`.
    void compare_with(const SegmentEncoder* other) noexcept;
    /// Excludes frames from `frame` on from the comparison.
    void compare_until(std::int64_t frame) noexcept { compare_end_ = frame; }
    /// The first frame of the current run of equal frames, up to the newest, if at least `length`
    /// of them differ from their predecessor.
    [[nodiscard]] std::optional<std::int64_t> agreement(int length) const noexcept;
    /// Makes only frames from `frame` on count for an agreement.
    void agree_from(std::int64_t frame) noexcept;
    /// Frames that differed after a run of `length` equal frames.
    [[nodiscard]] std::int64_t parted_frames() const noexcept { return parted_frames_; }
    /// How far the other encoder must be before this one continues, including frames that are
    /// emitted late.
    [[nodiscard]] std::int64_t wanted_frames() const noexcept;

    [[nodiscard]] std::int64_t unusable_samples() const noexcept {
        return encoder_->unusable_samples();
    }
    [[nodiscard]] const FrameQueue& frames() const noexcept { return frames_; }
    [[nodiscard]] FrameQueue& frames() noexcept { return frames_; }

    /// Position: the next sample of the current segment.
    int sample = 0;

private:
    Result<void> empty_reservoir();
    Result<void> accept(std::span<const std::byte> bytes);
    void compare(std::int64_t number, const CodedFrame& frame);

    std::unique_ptr<Encoder> encoder_;
    FrameSplitter splitter_;
    RateControl rate_control_;
    int frame_samples_;
    bool keep_raw_;
    std::int64_t first_frame_;
    FrameQueue frames_;
    std::int64_t fed_samples_ = 0;
    std::optional<std::int64_t> empty_before_;
    const SegmentEncoder* other_ = nullptr;
    std::int64_t compare_end_ = std::numeric_limits<std::int64_t>::max();
    std::optional<std::int64_t> agreed_from_;  // First frame of the current run of equal frames.
    int distinctive_frames_ = 0;               // Frames that differ from the one before.
    std::int64_t agree_from_ = 0;
    std::vector<std::byte> previous_data_;
    std::int64_t parted_frames_ = 0;
};

/// Consecutive frames that two encoders must agree on before a switch from one to the next. LAME's
/// memory for perceptual entropy is 19 frames; the rest covers its other states.
inline constexpr int agreement_frames = 24;

}  // namespace polymux::media::mp3
