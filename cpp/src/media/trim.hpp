// Start and end positions, exact to the sample, as with ffmpeg's -ss and -to before the input.
#pragma once

#include <cstdint>
#include <optional>

#include "media/ffmpeg.hpp"
#include "media/opened_input.hpp"

namespace polymux::media {

/// Moves packets to a clock whose zero is the start, and trims frames. Not thread-safe.
class Trimmer {
public:
    enum class Verdict : std::uint8_t { keep, nothing_left, past_end, failed };

    Trimmer(std::optional<double> start_s, std::optional<double> end_s,
            const AVFormatContext& format, const AVStream& stream);

    /// Seeks to before the start, if there is one. Returns false if the input cannot seek.
    [[nodiscard]] bool seek(OpenedInput& input) const;

    void shift(AVPacket& packet);

    /// After the last packet: the decoder's last frames have no packet.
    void drain() noexcept;

    /// Leaves in `frame` the samples between start and end.
    Verdict apply(AVFrame& frame);

private:
    void follow_jump(AVPacket& packet);
    void note_gap();
    std::int64_t position_of(const AVFrame& frame);

    std::optional<std::int64_t> start_us_;
    std::optional<std::int64_t> duration_us_;
    std::int64_t zero_us_ = 0;  // The start on the container's clock.
    AVRational time_base_{};
    bool may_jump_ = false;  // The container's clock can jump, as in concatenated MPEG-TS.
    std::optional<std::int64_t> clock_us_;  // The decoding time of the next frame.
    std::int64_t packet_pts_ = AV_NOPTS_VALUE;
    std::int64_t packet_duration_ = 0;
    bool first_of_packet_ = false;  // The packet has produced no frame yet.
    std::int64_t previous_packet_pts_ = AV_NOPTS_VALUE;
    std::int64_t rescale_state_ = AV_NOPTS_VALUE;
    std::int64_t first_kept_ = AV_NOPTS_VALUE;
};

}  // namespace polymux::media
