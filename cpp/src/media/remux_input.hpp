// One source of a remux: the open container, its selected streams, and their packets in order.
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

/// A stream copied from an input to the output.
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

    /// Selects the stream with this index. Errors: encrypted, limit_exceeded.
    Result<void> take(int index);

    /// Call once all streams are selected; the demuxer then skips the others.
    void discard_others() noexcept;

    /// Reads until a packet of a selected stream is in its timeline, or the end is reached.
    Result<void> read();

    [[nodiscard]] bool ended() const noexcept { return ended_; }
    [[nodiscard]] std::vector<std::unique_ptr<RemuxTrack>>& tracks() noexcept { return tracks_; }
    [[nodiscard]] const std::vector<Warning>& warnings() const noexcept { return warnings_; }

    /// Start of the presentation of the selected streams, in microseconds of the input's clock.
    [[nodiscard]] std::optional<std::int64_t> start_us() const;
    /// Duration of the selected streams by the container, in seconds.
    [[nodiscard]] std::optional<double> duration_s() const;

private:
    Result<void> accept(UniquePacket packet);
    Result<void> stop(int status);
    RemuxTrack* track_of(int stream_index) noexcept;
    void warn(const char* code, std::string message);

    OpenedInput opened_;
    int number_;
    // On the heap, because timelines refer to the jumps, and other objects refer to the tracks.
    std::unique_ptr<ClockJumps> jumps_ = std::make_unique<ClockJumps>();
    std::vector<std::unique_ptr<RemuxTrack>> tracks_;
    std::int64_t payload_bytes_ = 0;
    bool ended_ = false;
    std::vector<Warning> warnings_;
};

}  // namespace polymux::media
