#include "media/remux_timeline.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

extern "C" {
#include <libavutil/mathematics.h>
}

namespace polymux::media {

namespace {

constexpr std::int64_t second_us = 1'000'000;
/// A larger backward step means another clock. Smaller steps occur because segments may overlap.
constexpr std::int64_t backward_jump_us = second_us;
/// The same if only presentation times are known, which often go backward.
constexpr std::int64_t reordered_jump_us = 10 * second_us;
constexpr std::int64_t forward_jump_us = 10 * second_us;
/// Images examined to find how far they are reordered.
constexpr std::size_t lookahead = 100;
/// Number of stored jumps: the streams of one input are at most a few jumps apart.
constexpr std::size_t remembered_jumps = 16;
/// Far beyond any real clock, and far below the overflow of sums of times.
constexpr std::int64_t largest_time = std::int64_t{1} << 59;
constexpr std::int64_t largest_duration = std::int64_t{1} << 48;

bool has_only_presentation_times(const AVFormatContext& format, const AVStream& stream) {
    const AVCodecDescriptor* codec = avcodec_descriptor_get(stream.codecpar->codec_id);
    const bool reordered = codec != nullptr && (codec->props & AV_CODEC_PROP_REORDER) != 0;
    const std::string_view name = format.iformat->name;
    return reordered && stream.codecpar->codec_type == AVMEDIA_TYPE_VIDEO &&
           (name.starts_with("matroska") || name.starts_with("asf"));
}

std::int64_t frame_step(const AVStream& stream) {
    const AVRational rate = stream.avg_frame_rate;
    if (rate.num <= 0 || rate.den <= 0) return 1;
    return std::clamp<std::int64_t>(av_rescale_q(1, av_inv_q(rate), stream.time_base), 1,
                                    largest_duration);
}

bool is_time(std::int64_t time) noexcept {
    return time != AV_NOPTS_VALUE && time > -largest_time && time < largest_time;
}

}  // namespace

std::int64_t bounded_rescale(std::int64_t time, AVRational from, AVRational to) noexcept {
    const std::int64_t rescaled =
        av_rescale_q(std::clamp(time, -largest_time, largest_time), from, to);
    // FFmpeg's return value if the result does not fit.
    if (rescaled == AV_NOPTS_VALUE) return time < 0 ? -largest_time : largest_time;
    return std::clamp(rescaled, -largest_time, largest_time);
}

StreamTimeline::StreamTimeline(const AVFormatContext& format, const AVStream& stream,
                               ClockJumps& jumps)
    : time_base_(stream.time_base),
      presentation_only_(has_only_presentation_times(format, stream)),
      gaps_are_jumps_((format.iformat->flags & AVFMT_TS_DISCONT) != 0),
      default_step_(frame_step(stream)),
      jumps_(jumps) {}

void StreamTimeline::add(UniquePacket packet) {
    complete(*packet);
    take_out_jump(*packet);
    if (!presentation_only_) {
        settle(std::move(packet));
        return;
    }
    held_.push_back(std::move(packet));
    if (reorder_depth_ || held_.size() >= lookahead) release();
}

void StreamTimeline::release() {
    if (held_.empty()) return;
    if (!reorder_depth_) learn_order();
    while (!held_.empty()) {
        UniquePacket packet = std::move(held_.front());
        held_.pop_front();
        order(*packet);
        settle(std::move(packet));
    }
}

UniquePacket StreamTimeline::take() {
    UniquePacket packet = std::move(ready_.front());
    ready_.pop_front();
    return packet;
}

void StreamTimeline::complete(AVPacket& packet) {
    if (!is_time(packet.pts)) packet.pts = AV_NOPTS_VALUE;
    if (!is_time(packet.dts)) packet.dts = AV_NOPTS_VALUE;
    if (packet.duration < 0 || packet.duration > largest_duration) packet.duration = 0;
    if (packet.pts == AV_NOPTS_VALUE && packet.dts == AV_NOPTS_VALUE) {
        ++repaired_;
        packet.dts = next_.value_or(0) - from_us(offset_us_);
    }
    if (packet.pts == AV_NOPTS_VALUE) packet.pts = packet.dts;
    if (packet.dts == AV_NOPTS_VALUE || presentation_only_) packet.dts = packet.pts;
}

void StreamTimeline::take_out_jump(AVPacket& packet) {
    const std::int64_t backward_us = presentation_only_ ? reordered_jump_us : backward_jump_us;
    const std::int64_t time_us = to_us(packet.dts);
    const std::int64_t expected_us = next_ ? to_us(*next_) : time_us + offset_us_;
    const auto continues = [&](std::int64_t offset_us) {
        const std::int64_t ahead_us = time_us + offset_us - expected_us;
        return ahead_us >= -backward_us && (!gaps_are_jumps_ || ahead_us <= forward_jump_us);
    };
    if (!continues(offset_us_)) {
        ++jump_count_;
        auto& known = jumps_.offsets_us;
        const auto found = std::find_if(known.rbegin(), known.rend(), [&](std::int64_t offset_us) {
            return continues(offset_us) && time_us + offset_us - expected_us <= forward_jump_us;
        });
        offset_us_ = found != known.rend() ? *found : expected_us - time_us;
        if (found == known.rend()) known.push_back(offset_us_);
        if (known.size() > remembered_jumps) known.erase(known.begin());
    }
    const std::int64_t offset = from_us(offset_us_);
    packet.pts += offset;
    packet.dts += offset;
    next_ = std::max(next_.value_or(packet.dts), packet.dts + step(packet));
}

// Finds the maximum number of images that are decoded before one that is shown earlier.
void StreamTimeline::learn_order() {
    std::size_t depth = 0;
    first_pts_ = held_.front()->pts;
    for (std::size_t index = 0; index < held_.size(); ++index) {
        const std::int64_t pts = held_[index]->pts;
        first_pts_ = std::min(first_pts_, pts);
        const auto later =
            std::count_if(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(index),
                          [pts](const UniquePacket& earlier) { return earlier->pts > pts; });
        depth = std::max(depth, static_cast<std::size_t>(later));
    }
    reorder_depth_ = depth;
}

// Decoding times are the sorted presentation times, shifted earlier by as many images as the
// decoding order needs.
void StreamTimeline::order(AVPacket& packet) {
    pending_pts_.push(packet.pts);
    if (ordered_ < *reorder_depth_) {
        const auto missing = static_cast<std::int64_t>(*reorder_depth_ - ordered_);
        packet.dts = first_pts_ - missing * step(packet);
        ++ordered_;
        return;
    }
    packet.dts = pending_pts_.top();
    pending_pts_.pop();
}

void StreamTimeline::settle(UniquePacket packet) {
    const std::int64_t earliest = last_dts_ ? *last_dts_ + 1 : packet->dts;
    if (packet->dts < earliest || packet->pts < packet->dts) ++repaired_;
    packet->dts = std::max(packet->dts, earliest);
    packet->pts = std::max(packet->pts, packet->dts);
    last_dts_ = packet->dts;
    ready_.push_back(std::move(packet));
}

std::int64_t StreamTimeline::step(const AVPacket& packet) const noexcept {
    // A second field of a pair, or a header, has no duration.
    return packet.duration > 0 ? packet.duration : default_step_;
}

std::int64_t StreamTimeline::to_us(std::int64_t time) const noexcept {
    return bounded_rescale(time, time_base_, microseconds);
}

std::int64_t StreamTimeline::from_us(std::int64_t time_us) const noexcept {
    return bounded_rescale(time_us, microseconds, time_base_);
}

}  // namespace polymux::media
