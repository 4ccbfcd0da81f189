#include "media/mp3/segment_plan.hpp"

#include <algorithm>
#include <numeric>

namespace polymux::media::mp3 {

namespace {

// The overlap at a segment boundary is about 70 frames for any length, so long segments waste
// least. Memory limits them (24 MB of float stereo samples).
constexpr int max_frames = 2600;
constexpr int max_frames_many_workers = 1470;
constexpr int many_workers = 8;
constexpr int alone_frames = 98;
constexpr int streaming_first_frames = 98;
// Shorter files gain less than the cost of the second encoder.
constexpr std::int64_t min_parallel_s = 15;
// At VBR, each segment is two sevenths of the remaining length, within bounds that depend on the
// duration. Long segments come first and short ones last, so workers end at about the same time for
// any number of workers. The numbers come from a simulation of two to eight workers, one of them
// also reading.
constexpr std::int64_t rest_share_numerator = 2;
constexpr std::int64_t rest_share_denominator = 7;
constexpr std::int64_t max_length_divisor = 7;
constexpr std::int64_t max_bound_frames = 1000;
constexpr std::int64_t min_length_divisor = 8;
constexpr std::int64_t min_frames_vbr = 490;
constexpr std::int64_t min_bound_frames = 700;

int round_up(std::int64_t frames, int multiple) noexcept {
    return static_cast<int>((std::max<std::int64_t>(frames, 1) + multiple - 1) / multiple) *
           multiple;
}

int divide_up(std::int64_t value, std::int64_t by) noexcept {
    return static_cast<int>((value + by - 1) / by);
}

int length_at_constant_bitrate(std::optional<std::int64_t> frames, int workers) noexcept {
    const int max_length = workers > many_workers ? max_frames_many_workers : max_frames;
    if (!frames) return max_frames_many_workers;
    const int rounds = divide_up(*frames, std::int64_t{workers} * max_length);
    return divide_up(*frames, std::int64_t{workers} * std::max(rounds, 1));
}

int max_frames_at_variable_bitrate(std::optional<std::int64_t> frames) noexcept {
    const std::int64_t part = frames.value_or(0) / max_length_divisor;
    return static_cast<int>(std::clamp<std::int64_t>(part, max_bound_frames, max_frames));
}

}  // namespace

int padding_period(const EncoderSettings& encoder) noexcept {
    if (encoder.rate_control != RateControl::cbr) return 1;
    const int bitrate_bps = nearest_bitrate(encoder.bitrate_bps, encoder.sample_rate_hz);
    const int slots = shape_of(encoder).frame_samples() / 8;
    const int remainder = slots * (bitrate_bps / 1000) * 1000 % encoder.sample_rate_hz;
    return remainder == 0 ? 1
                          : encoder.sample_rate_hz / std::gcd(encoder.sample_rate_hz, remainder);
}

int SegmentPlan::length_at(std::int64_t first, bool alone) const noexcept {
    if (end_frame) {
        const std::int64_t part =
            (*end_frame - first) * rest_share_numerator / rest_share_denominator;
        const std::int64_t min_length =
            std::clamp(*end_frame / min_length_divisor, min_frames_vbr, min_bound_frames);
        return static_cast<int>(std::clamp<std::int64_t>(part, min_length, frames));
    }
    if (alone) return alone_frames;
    return first == 0 ? first_frames : frames;
}

SegmentPlan plan_segments(const PlanInput& input) noexcept {
    const int period = padding_period(input.encoder);
    const bool constant = input.encoder.rate_control == RateControl::cbr;
    const std::int64_t min_samples = min_parallel_s * input.encoder.sample_rate_hz;
    SegmentPlan plan;
    if (input.forced_frames > 0) {
        const int frames = round_up(input.forced_frames, period);
        return {.first_frames = frames,
                .frames = frames,
                .alone_frames = frames,
                .min_last_frames = std::min(frames, plan.min_last_frames),
                .parallel = true};
    }
    if (input.samples && *input.samples < min_samples) return plan;
    std::optional<std::int64_t> frames;
    if (input.samples) frames = *input.samples / shape_of(input.encoder).frame_samples() + 2;
    plan.parallel = true;
    plan.frames = constant ? round_up(length_at_constant_bitrate(frames, input.workers), period)
                           : max_frames_at_variable_bitrate(frames);
    if (!constant) plan.end_frame = frames;
    plan.alone_frames = constant ? round_up(alone_frames, period) : plan.frames;
    plan.first_frames =
        constant && input.streaming ? round_up(streaming_first_frames, period) : plan.frames;
    return plan;
}

}  // namespace polymux::media::mp3
