#include "media/opened_input.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <vector>

#include "media/disguise.hpp"
#include "media/scan/head_scan.hpp"

extern "C" {
#include <libavutil/avstring.h>
#include <libavutil/opt.h>
}

namespace polymux::media {

namespace {

// Formats that contain their own audio. Excluded on purpose: playlists and all formats that
// reference other files (hls, dash, concat, sdp, asx, image2, ...), raw formats that match any
// bytes (pcm_*), text renderers (tty, xbin), devices, and Audible's encrypted aa.
constexpr const char* sound_formats =
    "aac,ac3,adx,aiff,amr,amrnb,amrwb,ape,asf,asf_o,au,avi,caf,dsf,dts,dtshd,dv,eac3,flac,flv,gsm,"
    "gxf,iff,ircam,loas,matroska,webm,mlp,mov,mp4,m4a,3gp,3g2,mj2,mp3,mpc,mpc8,mpeg,mpegts,mxf,"
    "nistsphere,nut,ogg,oma,qcp,rm,shn,sox,tak,truehd,tta,voc,w64,wav,wtv,wv,xwma";

// The same for video, plus GIF.
constexpr const char* picture_formats =
    "asf,asf_o,avi,flv,gif,matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,mpeg,mpegts,mxf,nut,ogg";

// FFmpeg has no protocol with this name, so references in a container open nothing.
constexpr const char* no_protocol = "none";

int refuse_io_open(AVFormatContext* /*context*/, AVIOContext** io, const char* /*url*/,
                   int /*flags*/, AVDictionary** /*options*/) {
    *io = nullptr;
    return AVERROR(EPERM);
}

std::string list_decoders() {
    std::string names;
    void* state = nullptr;
    while (const AVCodec* codec = av_codec_iterate(&state)) {
        if (av_codec_is_decoder(codec) == 0 || codec->type != AVMEDIA_TYPE_AUDIO) continue;
        if (!names.empty()) names += ',';
        names += codec->name;
    }
    return names;
}

std::int64_t dictionary_bytes(const AVDictionary* dictionary) {
    std::int64_t bytes = 0;
    const AVDictionaryEntry* entry = nullptr;
    while ((entry = av_dict_get(dictionary, "", entry, AV_DICT_IGNORE_SUFFIX)) != nullptr) {
        bytes += static_cast<std::int64_t>(std::strlen(entry->key) + std::strlen(entry->value));
    }
    return bytes;
}

}  // namespace

const char* accepted_formats() noexcept {
    return sound_formats;
}

const std::string& accepted_decoders() {
    static const std::string names = list_decoders();
    return names;
}

bool is_moving_video(const AVStream& stream) {
    return stream.codecpar->codec_type == AVMEDIA_TYPE_VIDEO &&
           (stream.disposition & AV_DISPOSITION_ATTACHED_PIC) == 0;
}

bool is_encrypted(const AVStream& stream) {
    constexpr std::array<std::uint32_t, 3> encrypted_tags = {
        MKTAG('d', 'r', 'm', 's'), MKTAG('e', 'n', 'c', 'a'), MKTAG('e', 'n', 'c', 'v')};
    for (const std::uint32_t tag : encrypted_tags) {
        if (stream.codecpar->codec_tag == tag) return true;
    }
    if (!side_data(stream, AV_PKT_DATA_ENCRYPTION_INIT_INFO).empty()) return true;
    return av_dict_get(stream.metadata, "enc_key_id", nullptr, 0) != nullptr;
}

const char* OpenedInput::formats() const noexcept {
    return wanted_ == Wanted::pictures ? picture_formats : sound_formats;
}

Error OpenedInput::explain(ErrorCode code, std::string message, int averror) const {
    if (std::optional<Error> failure = io_->failure()) return *failure;
    return ffmpeg_error(code, std::move(message), averror, name());
}

Result<OpenedInput> OpenedInput::open(ByteSource& source, const Limits& limits,
                                      const CancelToken& token, Wanted wanted) {
    Result<std::unique_ptr<AvioInput>> io = AvioInput::create(source, token);
    if (!io) return io.error();
    OpenedInput input(std::move(*io), limits, wanted);
    if (Result<void> scanned = scan_head(*input.io_, limits); !scanned) return scanned.error();
    Result<const AVInputFormat*> recognised = input.recognise();
    if (!recognised) return recognised.error();
    if (Result<void> opened = input.open_container(*recognised); !opened) return opened.error();
    if (Result<void> checked = input.check_limits(); !checked) return checked.error();
    return input;
}

Result<const AVInputFormat*> OpenedInput::recognise() const {
    const AVInputFormat* recognised = nullptr;
    const int status = av_probe_input_buffer2(io_->context(), &recognised, "", nullptr, 0, 0);
    if (status < 0 || recognised == nullptr) {
        if (std::optional<Error> failure = io_->failure()) return *failure;
        Error error =
            ffmpeg_error(ErrorCode::unsupported_media,
                         "the content is not in a known audio or video format", status, name());
        return error;
    }
    if (av_match_list(recognised->name, formats(), ',') > 0) return recognised;
    return Error{.code = ErrorCode::unsupported_media,
                 .message = "the content looks like '" + std::string(recognised->name) +
                            "', a format that is not supported. Use a file in a supported "
                            "format that contains " +
                            (wanted_ == Wanted::pictures ? "video" : "audio") +
                            ", not a playlist, list of files, image or text",
                 .input_name = name()};
}

// If the source cannot seek, bytes read here could not be returned.
bool OpenedInput::must_probe_packets(const AVInputFormat& recognised) const {
    if (std::strcmp(recognised.name, "wav") != 0 || !io_->source().seekable()) return true;
    const std::uint64_t wanted = disguise_window_bytes;
    std::vector<unsigned char> head(std::min(io_->source().size_bytes().value_or(wanted), wanted));
    const int count = avio_read(io_->context(), head.data(), static_cast<int>(head.size()));
    const std::int64_t rewound = avio_seek(io_->context(), 0, SEEK_SET);
    if (count <= 0 || rewound != 0) return true;
    return may_be_disguised(std::span(head).first(static_cast<std::size_t>(count)));
}

Result<void> OpenedInput::open_container(const AVInputFormat* recognised) {
    AVFormatContext* context = avformat_alloc_context();
    if (context == nullptr) {
        return Error{.code = ErrorCode::out_of_memory,
                     .message = "not enough memory to open the input",
                     .input_name = name()};
    }
    context->pb = io_->context();
    context->flags |= AVFMT_FLAG_CUSTOM_IO;
    context->io_open = refuse_io_open;
    // One more than allowed: some demuxers of FFmpeg 7 stop at the limit silently, and the streams
    // that they then drop could not be counted.
    context->max_streams = limits_.streams < INT_MAX ? limits_.streams + 1 : INT_MAX;
    context->probesize = limits_.probe_bytes;
    if (!must_probe_packets(*recognised)) context->max_probe_packets = 1;
    Dictionary options;
    options.set("format_whitelist", formats());
    options.set("protocol_whitelist", no_protocol);
    options.set("codec_whitelist", accepted_decoders().c_str());
    // On failure FFmpeg frees the context itself.
    int status = avformat_open_input(&context, "", recognised, options.address());
    if (status < 0 && LogCapture::too_many_streams()) {
        return Error{.code = ErrorCode::limit_exceeded,
                     .message = "the input has too many streams (limit streams=" +
                                std::to_string(limits_.streams) + ")",
                     .input_name = name()};
    }
    if (status < 0) {
        return explain(
            ErrorCode::undecodable,
            "the input looks like '" + std::string(recognised->name) + "' but cannot be opened",
            status);
    }
    format_.reset(context);
    status = avformat_find_stream_info(context, nullptr);
    if (status < 0) {
        return explain(ErrorCode::undecodable, "the input's streams cannot be read", status);
    }
    if (std::optional<Error> failure = io_->failure()) return *failure;
    return {};
}

void OpenedInput::find_start() {
    // ffmpeg decodes as many frames before it trusts the times of H.264.
    constexpr int trusted_frames = 7;
    const std::span streams(format_->streams, format_->nb_streams);
    const auto found = std::find_if(streams.begin(), streams.end(), [](const AVStream* stream) {
        return is_moving_video(*stream) && stream->codecpar->codec_id == AV_CODEC_ID_H264;
    });
    if (found == streams.end() || !packets_.empty()) return;
    AVStream& video = **found;
    std::int64_t bytes = 0;
    for (int frames = 0; frames < trusted_frames;) {
        UniquePacket packet(av_packet_alloc());
        if (!packet || bytes > limits_.probe_bytes ||
            av_read_frame(format_.get(), packet.get()) < 0) {
            knows_start_ = false;
            return;
        }
        bytes += packet->size;
        const AVPacket& next = *packets_.emplace_back(std::move(packet));
        if (next.stream_index != video.index || ++frames > 1) continue;
        if (next.dts != AV_NOPTS_VALUE || next.pts == AV_NOPTS_VALUE) return;
        // libavformat gave it the start of the other streams.
        video.start_time = next.pts;
        const std::int64_t start_us = av_rescale_q(next.pts, video.time_base, microseconds);
        if (format_->start_time == AV_NOPTS_VALUE || format_->start_time > start_us) {
            format_->start_time = start_us;
        }
    }
}

int OpenedInput::read(AVPacket& packet) {
    if (packets_.empty()) return av_read_frame(format_.get(), &packet);
    av_packet_move_ref(&packet, packets_.front().get());
    packets_.pop_front();
    return 0;
}

int OpenedInput::seek(int stream_index, std::int64_t target) {
    packets_.clear();
    return avformat_seek_file(format_.get(), stream_index, INT64_MIN, target, target, 0);
}

Result<void> OpenedInput::check_limits() const {
    const auto exceeded = [this](const std::string& what, auto found, const char* limit_name,
                                 auto limit) {
        return Error{.code = ErrorCode::limit_exceeded,
                     .message = "the input has too many " + what + " (got " +
                                std::to_string(found) + ", limit " + limit_name + "=" +
                                std::to_string(limit) + ")",
                     .input_name = name()};
    };
    const std::span streams(format_->streams, format_->nb_streams);
    if (streams.size() > static_cast<std::size_t>(limits_.streams)) {
        return exceeded("streams", streams.size(), "streams", limits_.streams);
    }
    if (format_->nb_chapters > static_cast<unsigned>(limits_.chapters)) {
        return exceeded("chapters", format_->nb_chapters, "chapters", limits_.chapters);
    }
    std::int64_t tag_bytes = dictionary_bytes(format_->metadata);
    for (const AVStream* stream : streams) {
        tag_bytes += dictionary_bytes(stream->metadata) + stream->attached_pic.size;
    }
    for (const AVChapter* chapter : std::span(format_->chapters, format_->nb_chapters)) {
        tag_bytes += dictionary_bytes(chapter->metadata);
    }
    if (tag_bytes > limits_.tag_bytes) {
        return exceeded("bytes of tags and images", tag_bytes, "tag_bytes", limits_.tag_bytes);
    }
    return {};
}

}  // namespace polymux::media
