// Normalizes the timestamps of one stream for a muxer: complete, increasing, without jumps.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "media/ffmpeg.hpp"

namespace polymux::media {

/// `time` in another time base, limited to a range in which sums of a few times cannot overflow.
[[nodiscard]] std::int64_t bounded_rescale(std::int64_t time, AVRational from,
                                           AVRational to) noexcept;

/// Clock jumps shared by the streams of one input: the offsets that removed them, newest last. A
/// stream that reaches the same jump later uses the same offset, which keeps audio and video in
/// sync.
struct ClockJumps {
    std::vector<std::int64_t> offsets_us = {0};
};

/// Accepts packets in decoding order and returns them with both timestamps set, in the stream's
/// time base. Decoding times increase strictly and never exceed the presentation times.
class StreamTimeline {
public:
    /// `jumps` is shared by the streams of one input, and must outlive this object.
    StreamTimeline(const AVFormatContext& format, const AVStream& stream, ClockJumps& jumps);

    void add(UniquePacket packet);

    /// Releases all held-back packets: at the end, or if no more may be held back.
    void release();

    [[nodiscard]] const std::deque<UniquePacket>& ready() const noexcept { return ready_; }
    /// Returns the first ready packet; there must be one.
    UniquePacket take();
    [[nodiscard]] AVRational time_base() const noexcept { return time_base_; }
    [[nodiscard]] std::int64_t repaired() const noexcept { return repaired_; }
    [[nodiscard]] int jumps() const noexcept { return jump_count_; }

private:
    void complete(AVPacket& packet);
    void take_out_jump(AVPacket& packet);
    void learn_order();
    void order(AVPacket& packet);
    void settle(UniquePacket packet);
    [[nodiscard]] std::int64_t step(const AVPacket& packet) const noexcept;
    [[nodiscard]] std::int64_t to_us(std::int64_t time) const noexcept;
    [[nodiscard]] std::int64_t from_us(std::int64_t time_us) const noexcept;

    AVRational time_base_;
    bool presentation_only_;  ///< The container has no decoding times, and images are reordered.
    bool gaps_are_jumps_;
    std::int64_t default_step_;
    ClockJumps& jumps_;
    std::int64_t offset_us_ = 0;
    std::optional<std::int64_t> next_;  ///< Next packet's expected time, without jumps.
    std::optional<std::int64_t> last_dts_;
    std::deque<UniquePacket> held_;
    std::deque<UniquePacket> ready_;
    std::optional<std::size_t> reorder_depth_;
    std::size_t ordered_ = 0;
    std::int64_t first_pts_ = 0;
    std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> pending_pts_;
    std::int64_t repaired_ = 0;
    int jump_count_ = 0;
};

}  // namespace polymux::media
