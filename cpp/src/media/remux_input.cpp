#include "media/remux_input.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "media/remux_format.hpp"

namespace polymux::media {

namespace {

/// An index may reference the same bytes repeatedly. Valid packets together are as large as the
/// file; a few containers omit bytes with which each packet begins.
constexpr std::int64_t largest_growth = 4;
constexpr std::int64_t growth_allowance_bytes = 16 << 20;
/// Matroska's clock, to which start times are rounded.
constexpr std::int64_t coarsest_tick_us = 1000;

Error encrypted_input(const std::string& name) {
    return Error{.code = ErrorCode::encrypted,
                 .message = "the media is encrypted (DRM) and cannot be copied into another file",
                 .input_name = name};
}

}  // namespace

Result<void> RemuxInput::take(int index) {
    const AVStream& stream = *format().streams[index];
    const AVCodecParameters& parameters = *stream.codecpar;
    if (is_encrypted(stream)) return encrypted_input(name());
    const Limits& limits = opened_.limits();
    if (parameters.sample_rate > limits.sample_rate_hz ||
        parameters.ch_layout.nb_channels > limits.channels) {
        return Error{.code = ErrorCode::limit_exceeded,
                     .message = "the audio exceeds a limit (got channels=" +
                                std::to_string(parameters.ch_layout.nb_channels) +
                                " and sample_rate_hz=" + std::to_string(parameters.sample_rate) +
                                ", limits channels=" + std::to_string(limits.channels) +
                                " and sample_rate_hz=" + std::to_string(limits.sample_rate_hz) +
                                ")",
                     .input_name = name()};
    }
    tracks_.push_back(std::make_unique<RemuxTrack>(
        RemuxTrack{.input = number_,
                   .stream = &stream,
                   .timeline = StreamTimeline(format(), stream, *jumps_)}));
    return {};
}

void RemuxInput::discard_others() noexcept {
    for (AVStream* stream : std::span(format().streams, format().nb_streams)) {
        const bool taken = track_of(stream->index) != nullptr;
        stream->discard = taken ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    }
}

Result<void> RemuxInput::read() {
    for (int empty_reads = 0; !ended_;) {
        if (std::optional<Error> failure = opened_.io().failure()) return *failure;
        UniquePacket packet(av_packet_alloc());
        if (!packet) {
            return Error{.code = ErrorCode::out_of_memory,
                         .message = "not enough memory to read the input",
                         .input_name = name()};
        }
        const int status = av_read_frame(&format(), packet.get());
        if (status == AVERROR(EAGAIN) && ++empty_reads < max_empty_reads) continue;
        if (status < 0) return stop(status);
        if (track_of(packet->stream_index) == nullptr || packet->size <= 0) continue;
        return accept(std::move(packet));
    }
    return {};
}

Result<void> RemuxInput::accept(UniquePacket packet) {
    // Some containers report only here that the content is encrypted.
    if (av_packet_get_side_data(packet.get(), AV_PKT_DATA_ENCRYPTION_INFO, nullptr) != nullptr) {
        return encrypted_input(name());
    }
    if ((packet->flags & AV_PKT_FLAG_CORRUPT) != 0) {
        warn("damaged_packet", "a damaged or truncated packet was copied unchanged");
    }
    payload_bytes_ += packet->size;
    const std::optional<std::uint64_t> size = opened_.io().source().size_bytes();
    constexpr std::int64_t sane = std::numeric_limits<std::int64_t>::max() / (2 * largest_growth);
    if (size && payload_bytes_ > largest_growth * std::min(static_cast<std::int64_t>(*size), sane) +
                                     growth_allowance_bytes) {
        return Error{
            .code = ErrorCode::undecodable,
            .message =
                "the input's index refers to the same bytes repeatedly, so the output would "
                "be many times larger than the input",
            .input_name = name()};
    }
    RemuxTrack& track = *track_of(packet->stream_index);
    track.waiting_bytes += packet->size;
    track.timeline.add(std::move(packet));
    return {};
}

// Packets before the damage are kept, as in all other operations.
Result<void> RemuxInput::stop(int status) {
    ended_ = true;
    for (const auto& track : tracks_) track->timeline.release();
    if (std::optional<Error> failure = opened_.io().failure()) return *failure;
    if (status != AVERROR_EOF) {
        warn("input_truncated",
             "reading stopped before the end of the input: " + ffmpeg_text(status));
    }
    return {};
}

std::optional<std::int64_t> RemuxInput::start_us() const {
    std::optional<std::int64_t> earliest;
    for (const auto& track : tracks_) {
        std::int64_t start = track->stream->start_time;
        const auto& ready = track->timeline.ready();
        if (start == AV_NOPTS_VALUE && ready.empty()) continue;
        if (start == AV_NOPTS_VALUE) start = ready.front()->pts;
        std::int64_t start_us = bounded_rescale(start, track->stream->time_base, microseconds);
        const std::int64_t delay_us = decoder_delay_us(*track->stream->codecpar);
        if (start_us < 0 && start_us + delay_us > -coarsest_tick_us) start_us = 0;
        earliest = std::min(earliest.value_or(start_us), start_us);
    }
    return earliest;
}

std::optional<double> RemuxInput::duration_s() const {
    std::optional<double> max_duration;
    for (const auto& track : tracks_) {
        const AVStream& stream = *track->stream;
        std::optional<double> duration;
        if (stream.duration > 0) {
            duration = static_cast<double>(stream.duration) * av_q2d(stream.time_base);
        } else if (format().duration > 0) {
            duration = static_cast<double>(format().duration) / AV_TIME_BASE;
        }
        if (duration) max_duration = std::max(max_duration.value_or(0), *duration);
    }
    return max_duration;
}

RemuxTrack* RemuxInput::track_of(int stream_index) noexcept {
    const auto found = std::find_if(tracks_.begin(), tracks_.end(), [&](const auto& track) {
        return track->stream->index == stream_index;
    });
    return found == tracks_.end() ? nullptr : found->get();
}

void RemuxInput::warn(const char* code, std::string message) {
    const auto same = std::find_if(warnings_.begin(), warnings_.end(),
                                   [code](const Warning& known) { return known.code == code; });
    if (same != warnings_.end()) {
        ++same->count;
        return;
    }
    warnings_.push_back({.code = code, .message = std::move(message)});
}

}  // namespace polymux::media
