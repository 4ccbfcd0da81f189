// LAME's bit reservoir as arithmetic: which frame size it selects, and how many bits it leaves for
// the next frame. Does not access a bitstream. Source: the behavior of LAME 3.100, described in
// docs/explanation/parallel-mp3.md. Every stream is checked against it.
#pragma once

#include "polymux/media/mp3/encoder.hpp"
#include "polymux/media/mp3/frame.hpp"

namespace polymux::media::mp3 {

/// Constant properties of all frames of one encoder.
struct StreamShape {
    RateControl rate_control = RateControl::cbr;
    MpegVersion version = MpegVersion::mpeg1;
    int sample_rate_hz = 44'100;
    int channels = 2;

    [[nodiscard]] int head_bytes() const noexcept;  ///< Header and side information.
    [[nodiscard]] int granules() const noexcept { return version == MpegVersion::mpeg1 ? 2 : 1; }
    [[nodiscard]] int frame_samples() const noexcept { return 576 * granules(); }
};

[[nodiscard]] StreamShape shape_of(const EncoderSettings& settings) noexcept;

/// A frame's index in the table of bitrates, 1 to 14, and its padding byte.
struct FrameSize {
    int bitrate_index = 1;
    bool padding = false;

    bool operator==(const FrameSize&) const = default;
};

/// Bits of one frame's main data, and the bits around them in the stream of all main data.
struct Placement {
    int stuffing_bytes_before = 0;
    int stuffing_bits_after = 0;
    int main_data_begin_bytes = 0;  ///< Value for the side information.
};

/// The level is the number of bits that earlier frames left free: a multiple of 8 between frames.
class Reservoir {
public:
    explicit Reservoir(const StreamShape& shape);

    [[nodiscard]] int level_bits() const noexcept { return level_bits_; }
    [[nodiscard]] int highest_index() const noexcept { return highest_index_; }
    /// Maximum number of frames that an encoder holds back after receiving their samples. A frame
    /// is emitted when the main data of later frames has filled it.
    [[nodiscard]] int late_frames() const noexcept;
    [[nodiscard]] int payload_bits(FrameSize size) const noexcept;

    /// Maximum level after a frame of this size.
    [[nodiscard]] int limit_bits(FrameSize size) const noexcept;

    /// Maximum main data of a frame of this size at a level.
    [[nodiscard]] int available_bits(FrameSize size, int level_bits) const noexcept;

    /// Whether a frame of this size can hold `bits` at the current level.
    [[nodiscard]] bool fits(FrameSize size, int bits) const noexcept;

    /// The size that LAME selects at the current level for a frame of `bits`. A constant bitrate
    /// keeps its `own` size. `silent` is LAME's "analog silence": the frame is inaudible.
    [[nodiscard]] FrameSize choose(FrameSize own, int bits, bool silent) const noexcept;

    /// The level that a frame of `bits` in a frame of `size` would leave.
    [[nodiscard]] int level_after(FrameSize size, int bits) const noexcept;

    /// Adds a frame. `fits` must hold.
    Placement place(FrameSize size, int bits) noexcept;

    void empty() noexcept { level_bits_ = 0; }

private:
    [[nodiscard]] int frame_bits(FrameSize size) const noexcept;
    [[nodiscard]] int smallest_fitting(int bits) const noexcept;

    StreamShape shape_;
    int highest_index_;
    int level_bits_ = 0;
};

}  // namespace polymux::media::mp3
