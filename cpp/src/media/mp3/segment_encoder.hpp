// One encoder on its way through a file: first its own segments, then across the seam into those of
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

/// Where an encoder begins, if not with the first frame of a segment.
struct EncodingStart {
    int frames = 0;  ///< Of the segment, that are left out.
    /// The number of a frame before which the reservoir is emptied.
    std::optional<std::int64_t> empty_before = {};
};

/// Worked on by one thread at a time, which changes; `frames` is for all.
class SegmentEncoder {
public:
    /// Begins with `segment`. `keep_raw`: also publish the encoder's own bytes.
    SegmentEncoder(std::unique_ptr<Encoder> encoder, const EncoderSettings& settings,
                   const Segment& segment, bool keep_raw, const EncodingStart& start = {});

    /// Encodes up to `frames` frames' worth of `segment`, from where it stands, until `stop`.
    /// Returns the number of samples.
    Result<int> encode(const Segment& segment, int frames, const std::atomic<bool>& stop);
    /// The end of the file: gives the encoder's last frames.
    Result<void> flush();

    /// From now on every frame is compared with that of the same number in `other`.
    void compare_with(const SegmentEncoder* other) noexcept;
    /// Frames from that one on are left out of the comparison.
    void compare_until(std::int64_t frame) noexcept { compare_end_ = frame; }
    /// The first of the frames in a row that were equal, up to the newest, if at least `length` of
    /// them were not just like the one before.
    [[nodiscard]] std::optional<std::int64_t> agreement(int length) const noexcept;
    /// That frame and all after it, but none before, count for an agreement.
    void agree_from(std::int64_t frame) noexcept;
    /// Frames that differed after `length` in a row had been equal.
    [[nodiscard]] std::int64_t parted_frames() const noexcept { return parted_frames_; }
    /// How far the other encoder must be before this one goes on: frames that come out late
    /// included.
    [[nodiscard]] std::int64_t wanted_frames() const noexcept;

    [[nodiscard]] std::int64_t unusable_samples() const noexcept {
        return encoder_->unusable_samples();
    }
    [[nodiscard]] const FrameQueue& frames() const noexcept { return frames_; }
    [[nodiscard]] FrameQueue& frames() noexcept { return frames_; }

    /// Where it stands: the sample of its present segment that comes next.
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
    std::optional<std::int64_t> agreed_from_;  // The first frame of those in a row that are equal.
    int distinctive_frames_ = 0;               // Those of them that tell something.
    std::int64_t agree_from_ = 0;
    std::vector<std::byte> previous_data_;
    std::int64_t parted_frames_ = 0;
};

/// Frames in a row that two encoders must agree on before one is left for the other: LAME's memory
/// for perceptual entropy is 19 frames long, and then some for its other states.
inline constexpr int agreement_frames = 24;

}  // namespace polymux::media::mp3
