#include "media/remux_format.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <tuple>

namespace polymux::media {

namespace {

constexpr std::array mp4_video = {AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_AV1,
                                  AV_CODEC_ID_VP9, AV_CODEC_ID_MPEG4};
constexpr std::array mp4_audio = {AV_CODEC_ID_AAC, AV_CODEC_ID_MP3,  AV_CODEC_ID_OPUS,
                                  AV_CODEC_ID_AC3, AV_CODEC_ID_EAC3, AV_CODEC_ID_FLAC,
                                  AV_CODEC_ID_ALAC};
constexpr std::array webm_video = {AV_CODEC_ID_VP8, AV_CODEC_ID_VP9, AV_CODEC_ID_AV1};
constexpr std::array webm_audio = {AV_CODEC_ID_OPUS, AV_CODEC_ID_VORBIS};

template <typename Codecs>
bool holds(const Codecs& codecs, AVCodecID wanted) {
    return wanted == AV_CODEC_ID_NONE ||
           std::find(codecs.begin(), codecs.end(), wanted) != codecs.end();
}

bool fits(const RemuxCodecs& codecs, RemuxContainer container) {
    switch (container) {
        case RemuxContainer::mp4:
            return holds(mp4_video, codecs.video) && holds(mp4_audio, codecs.audio) &&
                   codecs.audio_has_mp4_header;
        case RemuxContainer::webm:
            return holds(webm_video, codecs.video) && holds(webm_audio, codecs.audio);
        case RemuxContainer::automatic:
        case RemuxContainer::matroska:
            return true;  // The muxer decides and reports its own error.
    }
    return false;
}

/// VP9 and AV1 without audio could come from any source; more players support MP4.
bool is_of_the_web(const RemuxCodecs& codecs) {
    return fits(codecs, RemuxContainer::webm) &&
           (codecs.audio != AV_CODEC_ID_NONE || codecs.video == AV_CODEC_ID_VP8);
}

RemuxContainer automatic(const RemuxCodecs& codecs) {
    if (is_of_the_web(codecs)) return RemuxContainer::webm;
    return fits(codecs, RemuxContainer::mp4) ? RemuxContainer::mp4 : RemuxContainer::matroska;
}

RemuxFormat named(RemuxContainer container, bool has_video) {
    RemuxFormat format;
    format.container = container;
    switch (container) {
        case RemuxContainer::mp4:
            format.name = "mp4";
            format.content_type = has_video ? "video/mp4" : "audio/mp4";
            format.extension = has_video ? "mp4" : "m4a";
            break;
        case RemuxContainer::webm:
            format.name = "webm";
            format.content_type = has_video ? "video/webm" : "audio/webm";
            format.extension = has_video ? "webm" : "weba";
            break;
        case RemuxContainer::automatic:
        case RemuxContainer::matroska:
            format.name = "matroska";
            format.content_type = has_video ? "video/matroska" : "audio/matroska";
            format.extension = has_video ? "mkv" : "mka";
            break;
    }
    format.muxer = av_guess_format(format.name.data(), nullptr, nullptr);
    return format;
}

std::string list(const RemuxCodecs& codecs) {
    std::string text;
    for (const AVCodecID codec : {codecs.video, codecs.audio}) {
        if (codec == AV_CODEC_ID_NONE) continue;
        if (!text.empty()) text += " and ";
        text += avcodec_get_name(codec);
    }
    return text;
}

}  // namespace

Result<RemuxFormat> choose_remux_format(const RemuxCodecs& codecs, RemuxContainer asked) {
    const RemuxContainer container = asked == RemuxContainer::automatic ? automatic(codecs) : asked;
    RemuxFormat format = named(container, codecs.video != AV_CODEC_ID_NONE);
    if (!fits(codecs, container)) {
        return Error{.code = ErrorCode::unsupported_media,
                     .message = "the container " + std::string(format.name) + " does not support " +
                                list(codecs) + ". Use matroska, or omit the container"};
    }
    if (format.muxer == nullptr) {
        return Error{
            .code = ErrorCode::unsupported_media,
            .message = "this FFmpeg has no muxer for the container " + std::string(format.name)};
    }
    return format;
}

std::optional<int> best_video_stream(const AVFormatContext& format) {
    constexpr int pictures = AV_DISPOSITION_ATTACHED_PIC | AV_DISPOSITION_TIMED_THUMBNAILS;
    using Score = std::tuple<bool, bool, std::int64_t>;
    std::optional<int> best;
    Score best_score;
    for (const AVStream* stream : std::span(format.streams, format.nb_streams)) {
        const AVCodecParameters& parameters = *stream->codecpar;
        if (parameters.codec_type != AVMEDIA_TYPE_VIDEO ||
            parameters.codec_id == AV_CODEC_ID_NONE || (stream->disposition & pictures) != 0) {
            continue;
        }
        const Score score{(stream->event_flags & AVSTREAM_EVENT_FLAG_NEW_PACKETS) != 0,
                          (stream->disposition & AV_DISPOSITION_DEFAULT) != 0,
                          std::int64_t{parameters.width} * parameters.height};
        if (!best || score > best_score) {
            best = stream->index;
            best_score = score;
        }
    }
    return best;
}

std::int64_t decoder_delay_us(const AVCodecParameters& parameters) noexcept {
    constexpr AVRational opus_clock{1, 48'000};
    if (parameters.codec_id != AV_CODEC_ID_OPUS || parameters.initial_padding <= 0) return 0;
    return av_rescale_q(parameters.initial_padding, opus_clock, microseconds);
}

}  // namespace polymux::media
