#include "media/remux_output.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "media/picture_format.hpp"

extern "C" {
#include <libavutil/mathematics.h>
#include <libavutil/pixdesc.h>
}

namespace polymux::media {

namespace {

constexpr AVRational milliseconds{1, 1000};

Error no_memory_to_write() {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory to write the output"};
}

/// Rotation, mastering display, light levels and similar data. Newer FFmpeg versions store them in
/// the codec parameters, which are copied anyway.
int copy_side_data([[maybe_unused]] AVStream& to, [[maybe_unused]] const AVStream& from) {
#if LIBAVCODEC_VERSION_INT < AV_VERSION_INT(60, 31, 100)
    for (int index = 0; index < from.nb_side_data; ++index) {
        const AVPacketSideData& data = from.side_data[index];
        std::uint8_t* copy = av_stream_new_side_data(&to, data.type, data.size);
        if (copy == nullptr) return AVERROR(ENOMEM);
        std::memcpy(copy, data.data, data.size);
    }
#endif
    return 0;
}

/// If the MP4 muxer cannot describe the pixels, it writes a header without content and reports no
/// error.
bool cannot_be_described(const AVCodecParameters& parameters) noexcept {
    if (parameters.codec_id != AV_CODEC_ID_VP9) return false;
    int across = 0;
    int down = 0;
    const auto format = static_cast<AVPixelFormat>(parameters.format);
    if (av_pix_fmt_get_chroma_sub_sample(format, &across, &down) < 0) return true;
    return down > across;
}

/// FFmpeg's `add` functions keep memory from av_malloc and free it with the context.
AVChapter* new_chapter(AVFormatContext& format) {
    auto* chapter = static_cast<AVChapter*>(av_mallocz(sizeof(AVChapter)));
    if (chapter == nullptr) return nullptr;
    auto** list = static_cast<AVChapter**>(
        av_realloc_array(format.chapters, format.nb_chapters + 1U, sizeof(AVChapter*)));
    if (list == nullptr) {
        av_free(chapter);
        return nullptr;
    }
    format.chapters = list;
    format.chapters[format.nb_chapters++] = chapter;
    return chapter;
}

/// Older Matroska muxers write an Opus stream's delay, but do not add it to the timestamps.
constexpr bool muxer_adds_delay = LIBAVFORMAT_VERSION_MAJOR >= 61;

}  // namespace

Result<std::unique_ptr<RemuxOutput>> RemuxOutput::create(ByteSink& sink, const RemuxFormat& format,
                                                         const CancelToken& token) {
    const bool mp4 = format.container == RemuxContainer::mp4;
    if (!sink.can_patch() || (mp4 && !sink.can_read_back())) {
        return Error{
            .code = ErrorCode::invalid_argument,
            .message =
                "the output must be a seekable file, because the beginning of the container "
                "is completed last"};
    }
    Result<std::unique_ptr<AvioOutput>> io = AvioOutput::create(sink, token);
    if (!io) return io.error();
    std::unique_ptr<RemuxOutput> output(new RemuxOutput(std::move(*io), format));
    AVFormatContext* context = nullptr;
    if (avformat_alloc_output_context2(&context, format.muxer, nullptr, "") < 0) {
        return no_memory_to_write();
    }
    output->muxer_.reset(context);
    output->io_->attach(*context);
    // No random numbers and no clock: the same packets make the same file.
    context->flags |= AVFMT_FLAG_BITEXACT;
    context->strict_std_compliance = FF_COMPLIANCE_EXPERIMENTAL;
    context->avoid_negative_ts = AVFMT_AVOID_NEG_TS_DISABLED;
    return output;
}

Result<void> RemuxOutput::add_stream(const AVStream& input, const AVPacket* first) {
    AVStream* stream = avformat_new_stream(muxer_.get(), nullptr);
    if (stream == nullptr) return no_memory_to_write();
    if (avcodec_parameters_copy(stream->codecpar, input.codecpar) < 0 ||
        copy_side_data(*stream, input) < 0) {
        return no_memory_to_write();
    }
    if (first != nullptr) complete_picture_format(*stream->codecpar, *first);
    if (is_mp4() && cannot_be_described(*stream->codecpar)) {
        return Error{
            .code = ErrorCode::unsupported_media,
            .message =
                "the VP9 video does not begin with a key frame, or MP4 does not support its "
                "pixel format. Use matroska"};
    }
    // The input container's name for the codec; the muxer uses its own.
    const bool hevc_in_mp4 = is_mp4() && input.codecpar->codec_id == AV_CODEC_ID_HEVC;
    stream->codecpar->codec_tag = hevc_in_mp4 ? MKTAG('h', 'v', 'c', '1') : 0;
    stream->time_base = input.time_base;
    stream->avg_frame_rate = input.avg_frame_rate;
    stream->r_frame_rate = input.r_frame_rate;
    stream->sample_aspect_ratio = input.sample_aspect_ratio;
    stream->disposition = input.disposition | AV_DISPOSITION_DEFAULT;
    for (const char* key : {"language", "title"}) {
        const AVDictionaryEntry* entry = av_dict_get(input.metadata, key, nullptr, 0);
        if (entry != nullptr) av_dict_set(&stream->metadata, key, entry->value, 0);
    }
    lanes_.emplace_back(input.codecpar->codec_id);
    return {};
}

Result<void> RemuxOutput::set_metadata(const Tags& tags, const std::vector<Chapter>& chapters) {
    for (const auto& [key, value] : tags) {
        if (av_dict_set(&muxer_->metadata, key.c_str(), value.c_str(), 0) < 0) {
            return no_memory_to_write();
        }
    }
    std::int64_t last_start_ms = -1;
    for (const Chapter& chapter : chapters) {
        // Muxers require chapters in order, and none may end before it begins.
        if (chapter.start_ms <= last_start_ms || chapter.end_ms < chapter.start_ms) continue;
        last_start_ms = chapter.start_ms;
        if (Result<void> added = add_chapter(chapter); !added) return added;
    }
    return {};
}

Result<void> RemuxOutput::add_chapter(const Chapter& chapter) {
    AVChapter* added = new_chapter(*muxer_);
    if (added == nullptr) return no_memory_to_write();
    added->id = muxer_->nb_chapters;
    added->time_base = milliseconds;
    added->start = chapter.start_ms;
    added->end = chapter.end_ms;
    for (const auto& [key, value] : chapter.tags) {
        if (av_dict_set(&added->metadata, key.c_str(), value.c_str(), 0) < 0) {
            return no_memory_to_write();
        }
    }
    return {};
}

Result<void> RemuxOutput::begin() {
    Dictionary options;
    if (is_mp4()) options.set("movflags", "+faststart");
    const int status = avformat_write_header(muxer_.get(), options.address());
    if (status >= 0) return {};
    Error error = explain(
        "the container " + std::string(format_.name) + " cannot store these streams", status);
    return error;
}

Result<bool> RemuxOutput::write(std::size_t index, AVPacket& packet, AVRational time_base,
                                std::int64_t zero) {
    packet.pts -= zero;
    packet.dts -= zero;
    packet.stream_index = static_cast<int>(index);
    packet.pos = -1;
    const AVStream& stream = *muxer_->streams[index];
    if (is_mp4() && !lanes_[index].dolby.accept(packet)) return false;
    rescale(lanes_[index], stream, packet, time_base);
    const int status = av_write_frame(muxer_.get(), &packet);
    if (status >= 0) return true;
    // Result of a bit stream filter for a damaged header.
    if (status == AVERROR_INVALIDDATA && !io_->failure()) return false;
    Error error = explain("a packet of the codec " +
                              std::string(avcodec_get_name(stream.codecpar->codec_id)) +
                              " cannot be written to the container " + std::string(format_.name),
                          status);
    error.position_s = static_cast<double>(packet.dts) * av_q2d(stream.time_base);
    return error;
}

Result<void> RemuxOutput::finish() {
    const bool described =
        !is_mp4() || std::all_of(lanes_.begin(), lanes_.end(),
                                 [](const Lane& lane) { return lane.dolby.complete(); });
    if (!described) {
        return Error{.code = ErrorCode::unsupported_media,
                     .message = "the E-AC-3 audio is too short for an MP4. Use matroska"};
    }
    const int status = av_write_trailer(muxer_.get());
    // The muxer itself ignores the results of its last writes.
    if (std::optional<Error> failure = io_->failure()) return *failure;
    if (status >= 0) return {};
    return explain("the output cannot be completed", status);
}

void RemuxOutput::rescale(Lane& lane, const AVStream& stream, AVPacket& packet,
                          AVRational from) const {
    const AVCodecParameters& parameters = *stream.codecpar;
    const AVRational to = stream.time_base;
    const int samples = parameters.codec_type == AVMEDIA_TYPE_AUDIO && parameters.sample_rate > 0
                            ? av_get_audio_frame_duration2(stream.codecpar, packet.size)
                            : 0;
    if (samples > 0) {
        // Coarse clocks would make frames of one length differ by a sample.
        packet.dts = av_rescale_delta(from, packet.dts, AVRational{1, parameters.sample_rate},
                                      samples, &lane.audio_remainder, to);
        packet.pts = packet.dts;
    } else {
        packet.pts = av_rescale_q(packet.pts, from, to);
        packet.dts = av_rescale_q(packet.dts, from, to);
    }
    if (!muxer_adds_delay && !is_mp4()) {
        const std::int64_t delay = av_rescale_q(decoder_delay_us(parameters), microseconds, to);
        packet.pts += delay;
        packet.dts += delay;
    }
    packet.duration = av_rescale_q(packet.duration, from, to);
    packet.time_base = to;
    if (lane.last_dts) packet.dts = std::max(packet.dts, *lane.last_dts + 1);
    packet.pts = std::max(packet.pts, packet.dts);
    lane.last_dts = packet.dts;
}

Error RemuxOutput::explain(std::string message, int status) const {
    if (std::optional<Error> failure = io_->failure()) return *failure;
    if (status == AVERROR(ENOMEM) && is_mp4()) {
        return ffmpeg_error(ErrorCode::limit_exceeded,
                            "the MP4 has too many packets for its index. Use matroska", status, {});
    }
    return ffmpeg_error(ErrorCode::unsupported_media, std::move(message), status, {});
}

}  // namespace polymux::media
