// The coded content of one frame, independent of where the encoder's reservoir put its bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "media/mp3/reservoir.hpp"
#include "polymux/result.hpp"

namespace polymux::media::mp3 {

struct CodedFrame {
    std::vector<std::byte> head;       ///< Header and side information, as the encoder wrote them.
    std::vector<std::byte> main_data;  ///< Bits after the last one of the frame are zero.
    int main_data_bits = 0;
    int largest_granule_bits = 0;
    int main_data_begin_bytes = 0;
    int level_bits = 0;  ///< Level of the encoder's reservoir before the frame.
    FrameSize size;
    bool silent = false;        ///< LAME classified the frame as "analog silence" (VBR only).
    bool follows_rules = true;  ///< So far, the encoder has behaved exactly like LAME 3.100.
};

/// The data of a frame that the reservoir's arithmetic needs.
struct FrameOutline {
    int bits = 0;
    int largest_granule_bits = 0;
    int level_bits = 0;
    FrameSize size;
    bool silent = false;
};

/// Whether two encoders coded a frame alike: side information, stereo mode and main data. At a
/// constant bitrate, also the start of the data and the length of the frame.
[[nodiscard]] bool same_content(const CodedFrame& one, const CodedFrame& other,
                                RateControl rate_control) noexcept;

/// Writes size and main_data_begin into a frame's head.
void set_layout(std::span<std::byte> head, MpegVersion version, FrameSize size,
                int main_data_begin_bytes) noexcept;

/// Takes the complete frames of one encoder, from its first, and returns their coded content.
/// Compares each with the expected reservoir arithmetic. Not thread-safe.
class FrameSplitter {
public:
    explicit FrameSplitter(const StreamShape& shape);

    /// Error `encoder_failed` if a frame is inconsistent.
    Result<CodedFrame> split(std::span<const std::byte> frame);

    /// Call after the encoder has emptied its reservoir after the last frame.
    void empty_reservoir() noexcept { reservoir_.empty(); }

private:
    void follow(CodedFrame& frame);
    void follow_size(CodedFrame& frame);

    StreamShape shape_;
    Reservoir reservoir_;
    std::vector<std::byte> stream_;  // The newest main data, as far back as frames can refer.
    bool follows_rules_ = true;
    bool was_silent_ = false;
    int previous_bits_ = -1;
};

}  // namespace polymux::media::mp3
