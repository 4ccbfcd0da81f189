#include "media/formats.hpp"

#include <array>
#include <bit>
#include <climits>
#include <cstdlib>
#include <span>

namespace polymux::media {

namespace {

// In the order in which libmp3lame's wrapper lists them, which breaks ties.
constexpr std::array<mp3::SampleFormat, 3> encoder_formats = {
    mp3::SampleFormat::s32, mp3::SampleFormat::f32, mp3::SampleFormat::s16};
constexpr std::array<int, 9> encoder_rates_hz = {44'100, 48'000, 32'000, 22'050, 24'000,
                                                 16'000, 11'025, 12'000, 8'000};

constexpr std::uint64_t front_pair = AV_CH_FRONT_LEFT | AV_CH_FRONT_RIGHT;
constexpr std::uint64_t center_pair = AV_CH_FRONT_LEFT_OF_CENTER | AV_CH_FRONT_RIGHT_OF_CENTER;
constexpr std::uint64_t wide_pair = AV_CH_WIDE_LEFT | AV_CH_WIDE_RIGHT;
constexpr std::uint64_t center = AV_CH_FRONT_CENTER;

struct Substitute {
    std::uint64_t input;
    std::uint64_t output;
};

// FFmpeg's substitutes for a missing front position. Only mono and stereo are possible outputs
// here, so its pairs for the sides and the back never apply.
constexpr std::array<Substitute, 4> substitutes = {{{front_pair, center},
                                                    {center_pair, front_pair},
                                                    {wide_pair, front_pair},
                                                    {center, front_pair}}};
// center_pair and wide_pair also stand in for a single center.
constexpr std::array<Substitute, 2> center_substitutes = {
    {{center_pair, center}, {wide_pair, center}}};

int layout_score(std::uint64_t input, std::uint64_t output) {
    int score = 100'000;
    const auto substitute = [&](const Substitute& pair) {
        const bool applies =
            (input & pair.input) == pair.input && (output & pair.input) != pair.input &&
            (output & pair.output) == pair.output && (input & pair.output) != pair.output;
        if (!applies) return;
        input &= ~pair.input;
        output &= ~pair.output;
        score += 10 * std::popcount(pair.output) - 2;
    };
    substitute(substitutes[0]);
    substitute(substitutes[1]);
    substitute(center_substitutes[0]);
    substitute(substitutes[2]);
    substitute(center_substitutes[1]);
    substitute(substitutes[3]);
    input &= ~AV_CH_LOW_FREQUENCY;
    return score + 10 * std::popcount(input & output) - 5 * std::popcount(output & ~input);
}

// ffmpeg's measure of what a conversion between sample formats loses.
int format_loss(AVSampleFormat output, AVSampleFormat input) {
    const int bytes = av_get_bytes_per_sample(output);
    const int input_bytes = av_get_bytes_per_sample(input);
    const AVSampleFormat packed = av_get_packed_sample_fmt(output);
    const AVSampleFormat input_packed = av_get_packed_sample_fmt(input);
    int loss = av_sample_fmt_is_planar(output) != av_sample_fmt_is_planar(input) ? 1 : 0;
    loss += bytes < input_bytes ? 100 * (input_bytes - bytes) : 10 * (bytes - input_bytes);
    if (packed == AV_SAMPLE_FMT_S32 && input_packed == AV_SAMPLE_FMT_FLT) loss += 20;
    if (packed == AV_SAMPLE_FMT_FLT && input_packed == AV_SAMPLE_FMT_S32) loss += 2;
    return loss;
}

}  // namespace

AVSampleFormat to_ffmpeg(mp3::SampleFormat format) noexcept {
    switch (format) {
        case mp3::SampleFormat::s16:
            return AV_SAMPLE_FMT_S16P;
        case mp3::SampleFormat::s32:
            return AV_SAMPLE_FMT_S32P;
        case mp3::SampleFormat::f32:
            return AV_SAMPLE_FMT_FLTP;
    }
    return AV_SAMPLE_FMT_NONE;
}

std::optional<int> best_audio_stream(const AVFormatContext& format) {
    std::optional<int> best;
    int best_score = 0;
    for (const AVStream* stream : std::span(format.streams, format.nb_streams)) {
        if (stream->codecpar->codec_type != AVMEDIA_TYPE_AUDIO) continue;
        int score = stream->codecpar->ch_layout.nb_channels;
        if ((stream->event_flags & AVSTREAM_EVENT_FLAG_NEW_PACKETS) != 0) score += 100'000'000;
        if ((stream->disposition & AV_DISPOSITION_DEFAULT) != 0) score += 5'000'000;
        if (!best || score > best_score) {
            best = stream->index;
            best_score = score;
        }
    }
    return best;
}

mp3::SampleFormat nearest_sample_format(AVSampleFormat input) {
    mp3::SampleFormat best = encoder_formats.front();
    int best_loss = INT_MAX;
    for (const mp3::SampleFormat candidate : encoder_formats) {
        const int loss = format_loss(to_ffmpeg(candidate), input);
        // At equal losses, ffmpeg takes the last one.
        if (loss > best_loss) continue;
        best_loss = loss;
        best = candidate;
    }
    return best;
}

int nearest_sample_rate(int input_hz) {
    int best = encoder_rates_hz.front();
    for (const int candidate : encoder_rates_hz) {
        if (std::abs(candidate - input_hz) < std::abs(best - input_hz)) best = candidate;
    }
    return best;
}

ChannelLayout nearest_layout(const ChannelLayout& input) {
    if (input.get()->order != AV_CHANNEL_ORDER_NATIVE) {
        return ChannelLayout::of_count(input.channels() == 1 ? 1 : 2);
    }
    const std::uint64_t mask = input.get()->u.mask;
    // A layout that the encoder supports is kept without scoring.
    if (mask == center) return ChannelLayout::of_count(1);
    if (mask == front_pair) return ChannelLayout::of_count(2);
    const int mono = layout_score(mask, center);
    const int stereo = layout_score(mask, front_pair);
    // At equal scores, ffmpeg takes the layout with fewer channels.
    return ChannelLayout::of_count(mono >= stereo ? 1 : 2);
}

}  // namespace polymux::media
