#include "media/info.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

extern "C" {
#include <libavutil/avstring.h>
}

#include "media/formats.hpp"

namespace polymux::media {

namespace {

std::optional<double> seconds(std::int64_t value, AVRational time_base) {
    if (value == AV_NOPTS_VALUE || time_base.den == 0) return std::nullopt;
    return static_cast<double>(value) * av_q2d(time_base);
}

std::optional<std::int64_t> positive(std::int64_t value) {
    if (value <= 0) return std::nullopt;
    return value;
}

std::string type_name(AVMediaType type) {
    const char* name = av_get_media_type_string(type);
    return name != nullptr ? name : "unknown";
}

const char* picture_mime_type(AVCodecID codec) {
    switch (codec) {
        case AV_CODEC_ID_MJPEG:
            return "image/jpeg";
        case AV_CODEC_ID_PNG:
            return "image/png";
        case AV_CODEC_ID_GIF:
            return "image/gif";
        case AV_CODEC_ID_BMP:
            return "image/bmp";
        case AV_CODEC_ID_TIFF:
            return "image/tiff";
        case AV_CODEC_ID_WEBP:
            return "image/webp";
        default:
            return nullptr;
    }
}

std::string tag_value(const AVDictionary* dictionary, const char* key) {
    const AVDictionaryEntry* entry = av_dict_get(dictionary, key, nullptr, 0);
    return entry != nullptr ? entry->value : "";
}

bool is_cover(const AVStream& stream) {
    return (stream.disposition & AV_DISPOSITION_ATTACHED_PIC) != 0;
}

StreamInfo describe_stream(const AVStream& stream) {
    const AVCodecParameters& parameters = *stream.codecpar;
    StreamInfo info;
    info.index = stream.index;
    info.type = type_name(parameters.codec_type);
    info.codec =
        parameters.codec_id == AV_CODEC_ID_NONE ? "unknown" : avcodec_get_name(parameters.codec_id);
    if (stream.duration > 0) info.duration_s = seconds(stream.duration, stream.time_base);
    info.bitrate_bps = positive(parameters.bit_rate);
    info.bits_per_sample = parameters.bits_per_raw_sample > 0 ? parameters.bits_per_raw_sample
                                                              : parameters.bits_per_coded_sample;
    info.language = tag_value(stream.metadata, "language");
    info.is_default = (stream.disposition & AV_DISPOSITION_DEFAULT) != 0;
    info.is_cover = is_cover(stream);
    info.encrypted = is_encrypted(stream);
    info.tags = to_tags(stream.metadata);
    if (parameters.codec_type == AVMEDIA_TYPE_AUDIO) {
        info.sample_rate_hz = parameters.sample_rate;
        info.channels = parameters.ch_layout.nb_channels;
        info.channel_layout = ChannelLayout::known(parameters.ch_layout).describe();
        const char* format = av_get_sample_fmt_name(static_cast<AVSampleFormat>(parameters.format));
        info.sample_format = format != nullptr ? format : "";
    } else {
        info.width = parameters.width;
        info.height = parameters.height;
    }
    return info;
}

std::vector<Chapter> read_chapters(const AVFormatContext& format) {
    std::vector<Chapter> chapters;
    for (const AVChapter* chapter : std::span(format.chapters, format.nb_chapters)) {
        constexpr AVRational milliseconds{1, 1000};
        chapters.push_back(
            {.start_ms = av_rescale_q(chapter->start, chapter->time_base, milliseconds),
             .end_ms = av_rescale_q(chapter->end, chapter->time_base, milliseconds),
             .tags = to_tags(chapter->metadata)});
    }
    return chapters;
}

int picture_type(const AVStream& stream) {
    // libavformat stores the ID3 or FLAC picture type as its English name in "comment".
    const std::string name = tag_value(stream.metadata, "comment");
    constexpr std::array<const char*, 21> names = {"Other",
                                                   "32x32 pixels 'file icon'",
                                                   "Other file icon",
                                                   "Cover (front)",
                                                   "Cover (back)",
                                                   "Leaflet page",
                                                   "Media (e.g. label side of CD)",
                                                   "Lead artist/lead performer/soloist",
                                                   "Artist/performer",
                                                   "Conductor",
                                                   "Band/Orchestra",
                                                   "Composer",
                                                   "Lyricist/text writer",
                                                   "Recording Location",
                                                   "During recording",
                                                   "During performance",
                                                   "Movie/video screen capture",
                                                   "A bright coloured fish",
                                                   "Illustration",
                                                   "Band/artist logotype",
                                                   "Publisher/Studio logotype"};
    const auto* const found = std::find_if(
        names.begin(), names.end(), [&name](const char* candidate) { return name == candidate; });
    constexpr int front_cover = 3;
    return found == names.end() ? front_cover : static_cast<int>(found - names.begin());
}

std::optional<Cover> read_cover(const AVFormatContext& format) {
    constexpr int front_cover = 3;
    std::optional<Cover> first;
    for (const AVStream* stream : std::span(format.streams, format.nb_streams)) {
        const char* mime_type = picture_mime_type(stream->codecpar->codec_id);
        if (!is_cover(*stream) || mime_type == nullptr || stream->attached_pic.size <= 0) continue;
        const int type = picture_type(*stream);
        if (first && type != front_cover) continue;
        const auto bytes = std::as_bytes(std::span(
            stream->attached_pic.data, static_cast<std::size_t>(stream->attached_pic.size)));
        first = Cover{.mime_type = mime_type,
                      .description = tag_value(stream->metadata, "title"),
                      .picture_type = type,
                      .data = {bytes.begin(), bytes.end()}};
        if (type == front_cover) break;
    }
    return first;
}

bool has_tag(const Tags& tags, const std::string& key) {
    return std::any_of(tags.begin(), tags.end(), [&key](const auto& entry) {
        return av_strcasecmp(entry.first.c_str(), key.c_str()) == 0;
    });
}

// Technical facts about the input that would be wrong in the output.
bool describes_the_container(const std::string& key) {
    constexpr std::array<const char*, 16> keys = {
        "encoder",           "creation_time", "major_brand",  "minor_version",
        "compatible_brands", "company_name",  "product_name", "product_version",
        "handler_name",      "vendor_id",     "language",     "duration",
        "encoder_options",   "TLEN",          "TSIZ",         "iTunSMPB"};
    return std::any_of(keys.begin(), keys.end(), [&key](const char* candidate) {
        return av_strcasecmp(key.c_str(), candidate) == 0;
    });
}

}  // namespace

MediaInfo describe(const OpenedInput& input) {
    const AVFormatContext& format = input.format();
    MediaInfo info;
    info.container = format.iformat->name;
    info.container_long_name =
        format.iformat->long_name != nullptr ? format.iformat->long_name : "";
    info.duration_s = format.duration > 0 ? seconds(format.duration, microseconds) : std::nullopt;
    info.start_s = seconds(format.start_time, microseconds);
    info.bitrate_bps = positive(format.bit_rate);
    info.size_bytes = input.io().source().size_bytes();
    for (const AVStream* stream : std::span(format.streams, format.nb_streams)) {
        info.streams.push_back(describe_stream(*stream));
    }
    info.best_audio_stream = best_audio_stream(format);
    CarriedMetadata carried = carried_metadata(format, info.best_audio_stream.value_or(-1));
    info.tags = to_tags(format.metadata);
    for (auto& entry : carried.tags) {
        if (!has_tag(info.tags, entry.first)) info.tags.push_back(std::move(entry));
    }
    info.chapters = std::move(carried.chapters);
    info.cover = std::move(carried.cover);
    return info;
}

CarriedMetadata carried_metadata(const AVFormatContext& format, int audio_stream) {
    CarriedMetadata carried;
    const auto add = [&carried](const AVDictionary* dictionary) {
        for (auto& entry : to_tags(dictionary)) {
            if (describes_the_container(entry.first) || has_tag(carried.tags, entry.first))
                continue;
            carried.tags.push_back(std::move(entry));
        }
    };
    add(format.metadata);
    const bool tags_per_stream = std::strcmp(format.iformat->name, "ogg") == 0;
    if (tags_per_stream && audio_stream >= 0) add(format.streams[audio_stream]->metadata);
    carried.chapters = read_chapters(format);
    carried.cover = read_cover(format);
    return carried;
}

CarriedMetadata ffmpeg_metadata(const AVFormatContext& format) {
    Dictionary metadata;
    av_dict_copy(metadata.address(), format.metadata, AV_DICT_DONT_OVERWRITE);
    for (const char* cleared :
         {"creation_time", "company_name", "product_name", "product_version"}) {
        metadata.set(cleared, nullptr);
    }
    const std::string own_name = "Lavf" + std::to_string(AV_VERSION_MAJOR(avformat_version())) +
                                 "." + std::to_string(AV_VERSION_MINOR(avformat_version())) + "." +
                                 std::to_string(AV_VERSION_MICRO(avformat_version()));
    metadata.set("encoder", own_name.c_str());
    return {.tags = to_tags(metadata.get()), .chapters = read_chapters(format), .cover = {}};
}

}  // namespace polymux::media
