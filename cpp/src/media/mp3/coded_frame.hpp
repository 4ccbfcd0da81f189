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
    int level_bits = 0;  ///< Level of the encoder's reservoir before the frame.
    FrameSize size;
    FrameDemand demand;
};

/// The data of a frame that the reservoir's arithmetic needs.
struct FrameOutline {
    int bits = 0;
    int level_bits = 0;
    FrameSize size;
    FrameDemand demand;
};

/// Writes size and main_data_begin into a frame's head.
void set_layout(std::span<std::byte> head, MpegVersion version, FrameSize size,
                int main_data_begin_bytes) noexcept;

/// Takes the complete frames of one encoder, from its first, and returns their coded content. Not
/// thread-safe.
class FrameSplitter {
public:
    explicit FrameSplitter(const StreamShape& shape);

    /// Error `encoder_failed` if a frame is inconsistent, or if it does not follow the arithmetic
    /// of LAME's reservoir.
    Result<CodedFrame> split(std::span<const std::byte> frame, const FrameDemand& demand);

    /// Call after the encoder has emptied its reservoir after the last frame.
    void empty_reservoir() noexcept { reservoir_.empty(); }

private:
    StreamShape shape_;
    Reservoir reservoir_;
    std::vector<std::byte> stream_;  // The newest main data, as far back as frames can refer.
};

}  // namespace polymux::media::mp3
