// How a file is cut into segments that are encoded side by side.
#pragma once

#include <cstdint>
#include <optional>

#include "media/mp3/reservoir.hpp"
#include "polymux/media/mp3/encoder.hpp"

namespace polymux::media::mp3 {

/// Lengths of segments in frames. At a constant bitrate they hardly ever change the result, so they
/// follow the number of workers; at ABR and VBR they follow from the duration alone, so that a file
/// is the same for every number of workers.
struct SegmentPlan {
    int first_frames = 0;
    int frames = 0;         ///< Of every other segment but the last, at most.
    int alone_frames = 0;   ///< While no other worker is to be had, at a constant bitrate.
    bool parallel = false;  ///< False: one encoder for all, nothing is cut.
    /// At ABR and VBR segments shrink towards this, the expected end; none at a constant bitrate.
    std::optional<std::int64_t> end_frame = {};

    /// Length of the segment that begins with frame `first`.
    [[nodiscard]] int length_at(std::int64_t first, bool alone) const noexcept;
};

struct PlanInput {
    EncoderSettings encoder;
    std::optional<std::int64_t> samples = {};  ///< Expected, at the encoder's rate.
    int workers = 1;                           ///< That can be had at the start.
    bool streaming = false;                    ///< The sink's reader waits for the first bytes.
    int forced_frames = 0;                     ///< For tests: the length of all segments.
};

[[nodiscard]] SegmentPlan plan_segments(const PlanInput& input) noexcept;

/// Frames after which the padding bytes of a constant bitrate repeat: 49 at 44.1 kHz and its
/// fractions, 1 where every frame has the same length.
[[nodiscard]] int padding_period(const EncoderSettings& encoder) noexcept;

}  // namespace polymux::media::mp3
