// How to cut a file into segments for parallel encoding.
#pragma once

#include <cstdint>
#include <optional>

#include "media/mp3/reservoir.hpp"
#include "polymux/media/mp3/encoder.hpp"

namespace polymux::media::mp3 {

/// Lengths of segments in frames. At a constant bitrate they rarely affect the result, so they
/// depend on the number of workers. At ABR and VBR they depend only on the duration, so a file is
/// the same for every number of workers.
struct SegmentPlan {
    int first_frames = 0;
    int frames = 0;        ///< Maximum for every segment but the last.
    int alone_frames = 0;  ///< While no other worker is available, at a constant bitrate.
    /// A shorter last segment belongs to the encoder before it, because its own would end before
    /// both have the same state.
    int min_last_frames = 150;
    bool parallel = false;  ///< False: one encoder for the whole file, no segments.
    /// At ABR and VBR, segments shrink towards this expected end; none at a constant bitrate.
    std::optional<std::int64_t> end_frame = {};

    /// Length of the segment that begins with frame `first`.
    [[nodiscard]] int length_at(std::int64_t first, bool alone) const noexcept;
};

struct PlanInput {
    EncoderSettings encoder;
    std::optional<std::int64_t> samples = {};  ///< Expected, at the encoder's rate.
    int workers = 1;                           ///< Available at the start.
    bool streaming = false;                    ///< The sink's reader waits for the first bytes.
    int forced_frames = 0;                     ///< For tests: length of all segments.
};

[[nodiscard]] SegmentPlan plan_segments(const PlanInput& input) noexcept;

/// Frames after which the padding bytes of a constant bitrate repeat: 49 at 44.1 kHz and its
/// fractions, 1 if every frame has the same length.
[[nodiscard]] int padding_period(const EncoderSettings& encoder) noexcept;

}  // namespace polymux::media::mp3
