// What an encoder coded for one frame, freed from where its reservoir happened to put the bits.
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
    std::vector<std::byte> main_data;  ///< Bits behind the last one of the frame are zero.
    int main_data_bits = 0;
    int largest_granule_bits = 0;
    int main_data_begin_bytes = 0;
    int level_bits = 0;  ///< What the encoder's reservoir held before the frame.
    FrameSize size;
    bool silent = false;        ///< LAME took the frame for "analog silence" (VBR only).
    bool follows_rules = true;  ///< The encoder has done nothing so far that LAME 3.100 would not.
};

/// What the reservoir's arithmetic needs of a frame.
struct FrameOutline {
    int bits = 0;
    int largest_granule_bits = 0;
    int level_bits = 0;
    FrameSize size;
    bool silent = false;
};

/// Whether two encoders coded a frame alike: side information, stereo mode and main data. At a
/// constant bitrate also where the data begins and how long the frame is.
[[nodiscard]] bool same_content(const CodedFrame& one, const CodedFrame& other,
                                RateControl rate_control) noexcept;

/// Writes size and main_data_begin into a frame's head.
void set_layout(std::span<std::byte> head, MpegVersion version, FrameSize size,
                int main_data_begin_bytes) noexcept;

/// Takes the complete frames of one encoder, from its first on, and gives what it coded. Compares
/// each with what the reservoir's arithmetic expects. Not thread-safe.
class FrameSplitter {
public:
    explicit FrameSplitter(const StreamShape& shape);

    /// Error `encoder_failed` when a frame contradicts itself.
    Result<CodedFrame> split(std::span<const std::byte> frame);

    /// The encoder has emptied its reservoir behind the last frame.
    void empty_reservoir() noexcept { reservoir_.empty(); }

private:
    void follow(CodedFrame& frame);
    void follow_size(CodedFrame& frame);

    StreamShape shape_;
    Reservoir reservoir_;
    std::vector<std::byte> stream_;  // The newest main data, as far back as frames can point.
    bool follows_rules_ = true;
    bool was_silent_ = false;
    int previous_bits_ = -1;
};

}  // namespace polymux::media::mp3
