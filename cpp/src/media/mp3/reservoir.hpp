// LAME's bit reservoir as arithmetic: which frame size it chooses, and what it leaves for the next
// frame. Nothing here touches a bitstream. Source: the behaviour of LAME 3.100, described in
// docs/explanation/parallel-mp3.md; every stream that passes is checked against it.
#pragma once

#include "polymux/media/mp3/encoder.hpp"
#include "polymux/media/mp3/frame.hpp"

namespace polymux::media::mp3 {

/// What never changes in the frames of one encoder.
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

/// A frame's place in the table of bitrates, 1 to 14, and its padding byte.
struct FrameSize {
    int bitrate_index = 1;
    bool padding = false;

    bool operator==(const FrameSize&) const = default;
};

/// Bits of one frame's main data, and what surrounds them in the stream of all main data.
struct Placement {
    int stuffing_bytes_before = 0;
    int stuffing_bits_after = 0;
    int main_data_begin_bytes = 0;  ///< As the side information must say it.
};

/// The level is the number of bits that earlier frames left free; a multiple of 8 between frames.
class Reservoir {
public:
    explicit Reservoir(const StreamShape& shape);

    [[nodiscard]] int level_bits() const noexcept { return level_bits_; }
    [[nodiscard]] int highest_index() const noexcept { return highest_index_; }
    /// Most frames that an encoder still holds back of those whose samples it has been given: a
    /// frame comes out when the main data of later ones has filled it.
    [[nodiscard]] int late_frames() const noexcept;
    [[nodiscard]] int payload_bits(FrameSize size) const noexcept;

    /// Most that may be left after a frame of this size.
    [[nodiscard]] int limit_bits(FrameSize size) const noexcept;

    /// Most main data a frame of this size could have at a level.
    [[nodiscard]] int available_bits(FrameSize size, int level_bits) const noexcept;

    /// Whether a frame of this size can hold `bits` at the present level.
    [[nodiscard]] bool fits(FrameSize size, int bits) const noexcept;

    /// The size LAME takes at the present level for a frame of `bits`; a constant bitrate's
    /// `own` size stays. `silent` is LAME's "analog silence": nothing to hear in the frame.
    [[nodiscard]] FrameSize choose(FrameSize own, int bits, bool silent) const noexcept;

    /// The level that a frame of `bits` in a frame of `size` would leave.
    [[nodiscard]] int level_after(FrameSize size, int bits) const noexcept;

    /// Takes a frame in. `fits` must hold.
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
