#include "media/trim.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

extern "C" {
#include <libavutil/mathematics.h>
#include <libavutil/samplefmt.h>
}

namespace polymux::media {

namespace {

// If timestamps are decoding times, reordered images put the audio of a moment slightly before its
// key frame; ffmpeg steps back this far.
constexpr std::int64_t reordering_margin_us = 3 * AV_TIME_BASE / 23;

std::int64_t to_us(double seconds) {
    return std::llround(seconds * AV_TIME_BASE);
}

// ffmpeg asks the video decoder whether the stream really reorders its images. Video is never
// decoded here, so unless the container states it, the codec's usual behavior applies. In the worst
// case, slightly more is read before the start.
bool reorders_pictures(const AVFormatContext& format, const AVStream& stream) {
    if (!is_moving_video(stream)) return false;
    if (stream.codecpar->video_delay > 0) return true;
    const bool container_knows = std::strncmp(format.iformat->name, "mov", 3) == 0;
    switch (stream.codecpar->codec_id) {
        case AV_CODEC_ID_H264:
            return !container_knows;
        case AV_CODEC_ID_HEVC:
        case AV_CODEC_ID_MPEG1VIDEO:
        case AV_CODEC_ID_MPEG2VIDEO:
        case AV_CODEC_ID_VC1:
            return true;
        default:
            return false;
    }
}

// Keeps samples [begin, end) of the frame. Copies them to a new buffer, because the converter
// expects aligned memory as in ffmpeg. Returns 0 or an AVERROR.
int keep_samples(AVFrame& frame, int begin, int end) {
    if (begin > 0) {
        UniqueFrame cut(av_frame_alloc());
        if (!cut) return AVERROR(ENOMEM);
        cut->nb_samples = end - begin;
        cut->format = frame.format;
        cut->sample_rate = frame.sample_rate;
        int status = av_channel_layout_copy(&cut->ch_layout, &frame.ch_layout);
        if (status >= 0) status = av_frame_get_buffer(cut.get(), 0);
        if (status < 0) return status;
        av_samples_copy(cut->extended_data, frame.extended_data, 0, begin, cut->nb_samples,
                        frame.ch_layout.nb_channels, static_cast<AVSampleFormat>(frame.format));
        av_frame_unref(&frame);
        av_frame_move_ref(&frame, cut.get());
        return 0;
    }
    frame.nb_samples = end;
    return 0;
}

}  // namespace

Trimmer::Trimmer(std::optional<double> start_s, std::optional<double> end_s,
                 const AVFormatContext& format, const AVStream& stream)
    : time_base_(stream.time_base), may_jump_((format.iformat->flags & AVFMT_TS_DISCONT) != 0) {
    if (start_s) start_us_ = to_us(*start_s);
    if (end_s) duration_us_ = to_us(*end_s) - start_us_.value_or(0);
    zero_us_ = start_us_.value_or(0);
    if (format.start_time != AV_NOPTS_VALUE) zero_us_ += format.start_time;
}

bool Trimmer::seek(OpenedInput& input) const {
    if (!start_us_ || *start_us_ == 0) return true;
    const AVFormatContext& format = input.format();
    const std::span streams(format.streams, format.nb_streams);
    std::int64_t target_us = zero_us_;
    if ((format.iformat->flags & AVFMT_SEEK_TO_PTS) == 0 &&
        std::any_of(streams.begin(), streams.end(), [&format](const AVStream* stream) {
            return reorders_pictures(format, *stream);
        })) {
        target_us -= reordering_margin_us;
    }
    // libavformat prefers a video stream for seeking, but only if it has the size, which would need
    // a decoder. So the stream is passed explicitly.
    const auto video = std::find_if(streams.begin(), streams.end(), [](const AVStream* stream) {
        return is_moving_video(*stream);
    });
    if (video == streams.end()) {
        return input.seek(-1, target_us) >= 0;
    }
    const std::int64_t target = av_rescale_q(target_us, microseconds, (*video)->time_base);
    return input.seek((*video)->index, target) >= 0;
}

void Trimmer::shift(AVPacket& packet) {
    const std::int64_t offset = av_rescale_q(-zero_us_, microseconds, time_base_);
    if (packet.pts != AV_NOPTS_VALUE) packet.pts += offset;
    if (packet.dts != AV_NOPTS_VALUE) {
        packet.dts += offset;
        follow_jump(packet);
        clock_us_ = av_rescale_q(packet.dts, time_base_, microseconds);
    }
    packet_pts_ = packet.pts;
    packet_duration_ = packet.duration;
    first_of_packet_ = true;
}

void Trimmer::drain() noexcept {
    packet_pts_ = AV_NOPTS_VALUE;
    packet_duration_ = 0;
}

// ffmpeg lets time go on if the container's clock jumps.
void Trimmer::follow_jump(AVPacket& packet) {
    constexpr std::int64_t largest_jump_us = 10 * AV_TIME_BASE;
    constexpr std::int64_t largest_step_back_us = AV_TIME_BASE / 10;
    if (!may_jump_ || !clock_us_) return;
    const std::int64_t jump_us = av_rescale_q(packet.dts, time_base_, microseconds) - *clock_us_;
    if (jump_us >= -largest_step_back_us && jump_us <= largest_jump_us) return;
    zero_us_ += jump_us;
    const std::int64_t jump = av_rescale_q(jump_us, microseconds, time_base_);
    packet.dts -= jump;
    if (packet.pts != AV_NOPTS_VALUE) packet.pts -= jump;
}

// A gap before the packet ends continuous sample counting; the clock is then read again.
void Trimmer::note_gap() {
    if (!first_of_packet_) return;
    first_of_packet_ = false;
    if (packet_duration_ != 0 && previous_packet_pts_ != AV_NOPTS_VALUE &&
        packet_pts_ != AV_NOPTS_VALUE && packet_pts_ - previous_packet_pts_ > packet_duration_) {
        rescale_state_ = AV_NOPTS_VALUE;
    }
    previous_packet_pts_ = packet_pts_;
}

// Only the first frame of a packet has the packet's time. The others, and those of a stream without
// times, follow the clock, which has whole microseconds as in ffmpeg.
std::int64_t Trimmer::position_of(const AVFrame& frame) {
    const bool has_packet_time = first_of_packet_ && packet_pts_ != AV_NOPTS_VALUE;
    note_gap();
    const std::int64_t clock_us = clock_us_.value_or(0);
    clock_us_ = clock_us + std::int64_t{AV_TIME_BASE} * frame.nb_samples / frame.sample_rate;
    const AVRational samples{1, frame.sample_rate};
    const auto rescale = [&](std::int64_t time, AVRational time_base) {
        return av_rescale_delta(time_base, time, samples, frame.nb_samples, &rescale_state_,
                                samples);
    };
    if (frame.pts != AV_NOPTS_VALUE) return rescale(frame.pts, time_base_);
    return has_packet_time ? rescale(packet_pts_, time_base_) : rescale(clock_us, microseconds);
}

Trimmer::Verdict Trimmer::apply(AVFrame& frame) {
    if (!start_us_ && !duration_us_) return Verdict::keep;
    const std::int64_t position = position_of(frame);
    const std::int64_t samples = frame.nb_samples;
    std::int64_t begin = 0;
    if (start_us_) {
        if (position + samples <= 0) return Verdict::nothing_left;
        begin = std::max<std::int64_t>(0, -position);
    }
    std::int64_t end = samples;
    // The length counts from the requested start, even if the stream begins later.
    if (first_kept_ == AV_NOPTS_VALUE) first_kept_ = start_us_ ? 0 : position;
    if (duration_us_) {
        const std::int64_t duration =
            av_rescale_q(*duration_us_, microseconds, AVRational{1, frame.sample_rate});
        if (position - first_kept_ >= duration) return Verdict::past_end;
        end = std::min(samples, first_kept_ + duration - position);
    }
    if (begin >= end) return Verdict::nothing_left;
    if (begin == 0 && end == samples) return Verdict::keep;
    const int status = keep_samples(frame, static_cast<int>(begin), static_cast<int>(end));
    return status < 0 ? Verdict::failed : Verdict::keep;
}

}  // namespace polymux::media
