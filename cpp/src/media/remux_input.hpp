// One source of a remux: the open container, the streams taken from it, their packets in order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "media/opened_input.hpp"
#include "media/remux_timeline.hpp"
#include "polymux/media/convert.hpp"
#include "polymux/media/remux.hpp"

namespace polymux::media {

/// A stream on its way from an input to the output.
struct RemuxTrack {
    int input = 0;                     ///< Number of the input.
    const AVStream* stream = nullptr;  ///< Owned by the input.
    StreamTimeline timeline;
    std::int64_t waiting_bytes = 0;  ///< In the timeline.
    std::int64_t zero = 0;           ///< The time that becomes 0, in the stream's time base.

    [[nodiscard]] std::int64_t output_us(std::int64_t time) const noexcept {
        return bounded_rescale(time - zero, timeline.time_base(), microseconds);
    }
};

class RemuxInput {
public:
    RemuxInput(OpenedInput opened, int number) : opened_(std::move(opened)), number_(number) {}

    [[nodiscard]] AVFormatContext& format() const noexcept { return opened_.format(); }
    [[nodiscard]] const OpenedInput& opened() const noexcept { return opened_; }
    [[nodiscard]] const std::string& name() const noexcept { return opened_.name(); }

    /// Takes the stream of this index. Errors: encrypted, limit_exceeded.
    Result<void> take(int index);

    /// Call once all streams are taken: the demuxer need not look for others.
    void discard_others() noexcept;

    /// Reads on until a packet of a taken stream is in its timeline, or the end is reached.
    Result<void> read();

    [[nodiscard]] bool ended() const noexcept { return ended_; }
    [[nodiscard]] std::vector<std::unique_ptr<RemuxTrack>>& tracks() noexcept { return tracks_; }
    [[nodiscard]] const std::vector<Warning>& warnings() const noexcept { return warnings_; }

    /// Where the presentation of the taken streams begins, in microseconds of the input's clock.
    [[nodiscard]] std::optional<std::int64_t> start_us() const;
    /// How long the container says the taken streams are, in seconds.
    [[nodiscard]] std::optional<double> duration_s() const;

private:
    Result<void> accept(UniquePacket packet);
    Result<void> stop(int status);
    RemuxTrack* track_of(int stream_index) noexcept;
    void warn(const char* code, std::string message);

    OpenedInput opened_;
    int number_;
    // Behind pointers: the timelines refer to the jumps, and the tracks are referred to.
    std::unique_ptr<ClockJumps> jumps_ = std::make_unique<ClockJumps>();
    std::vector<std::unique_ptr<RemuxTrack>> tracks_;
    std::int64_t payload_bytes_ = 0;
    bool ended_ = false;
    std::vector<Warning> warnings_;
};

}  // namespace polymux::media
