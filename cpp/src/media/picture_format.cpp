#include "media/picture_format.hpp"

#include <array>
#include <memory>
#include <optional>
#include <span>

extern "C" {
#include <libavutil/pixfmt.h>
}

namespace polymux::media {

namespace {

struct CloseParser {
    void operator()(AVCodecParserContext* parser) const noexcept { av_parser_close(parser); }
};
using UniqueParser = std::unique_ptr<AVCodecParserContext, CloseParser>;

class BitReader {
public:
    explicit BitReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

    /// Reads the next bits as a number; zeros past the end.
    unsigned read(unsigned count) {
        unsigned value = 0;
        for (; count > 0; --count, ++position_) {
            const std::size_t byte = position_ / 8;
            const unsigned bit =
                byte < bytes_.size() ? (unsigned{bytes_[byte]} >> (7U - position_ % 8)) & 1U : 0U;
            value = value << 1U | bit;
        }
        return value;
    }

private:
    std::span<const std::uint8_t> bytes_;
    std::size_t position_ = 0;
};

struct Vp9Format {
    int profile;
    AVPixelFormat pixels;
};

// By depth (8, 10, 12 bits), then by subsampling: none, vertical, horizontal, both.
constexpr std::array<std::array<AVPixelFormat, 4>, 3> yuv_formats = {
    {{AV_PIX_FMT_YUV444P, AV_PIX_FMT_YUV440P, AV_PIX_FMT_YUV422P, AV_PIX_FMT_YUV420P},
     {AV_PIX_FMT_YUV444P10, AV_PIX_FMT_YUV440P10, AV_PIX_FMT_YUV422P10, AV_PIX_FMT_YUV420P10},
     {AV_PIX_FMT_YUV444P12, AV_PIX_FMT_YUV440P12, AV_PIX_FMT_YUV422P12, AV_PIX_FMT_YUV420P12}}};
constexpr std::array<AVPixelFormat, 3> rgb_formats = {AV_PIX_FMT_GBRP, AV_PIX_FMT_GBRP10,
                                                      AV_PIX_FMT_GBRP12};

/// Parses the uncompressed header of a key frame. Returns nothing for other frames. VP9 bitstream,
/// section 6.2.
std::optional<Vp9Format> read_vp9_header(std::span<const std::uint8_t> frame) {
    constexpr unsigned frame_marker = 2;
    constexpr unsigned sync_code = 0x498342;
    constexpr unsigned rgb = 7;
    constexpr unsigned other_flags = 2;  // show_frame and error_resilient_mode.
    BitReader bits(frame);
    if (bits.read(2) != frame_marker) return std::nullopt;
    const unsigned profile_low = bits.read(1);
    const unsigned profile = profile_low + 2 * bits.read(1);
    if (profile == 3 && bits.read(1) != 0) return std::nullopt;
    const bool repeats = bits.read(1) != 0;
    const bool depends_on_others = bits.read(1) != 0;
    bits.read(other_flags);
    if (repeats || depends_on_others || bits.read(24) != sync_code) return std::nullopt;
    const unsigned depth = profile >= 2 ? 1 + bits.read(1) : 0;
    const bool subsampling_varies = profile % 2 != 0;
    if (bits.read(3) == rgb) return Vp9Format{static_cast<int>(profile), rgb_formats.at(depth)};
    bits.read(1);  // Color range.
    const unsigned subsampling = subsampling_varies ? bits.read(2) : 3;
    return Vp9Format{static_cast<int>(profile), yuv_formats.at(depth).at(subsampling)};
}

void complete_vp9_format(AVCodecParameters& parameters, const AVPacket& packet) {
    const std::span frame(packet.data, static_cast<std::size_t>(packet.size));
    const std::optional<Vp9Format> format = read_vp9_header(frame);
    if (!format) return;
    parameters.format = format->pixels;
    parameters.profile = format->profile;
}

void complete_size(AVCodecParameters& parameters, const AVPacket& packet) {
    const UniqueParser parser(av_parser_init(parameters.codec_id));
    const UniqueCodecContext codec(avcodec_alloc_context3(nullptr));
    if (!parser || !codec) return;
    if (avcodec_parameters_to_context(codec.get(), &parameters) < 0) return;
    parser->flags |= PARSER_FLAG_COMPLETE_FRAMES;
    std::uint8_t* picture = nullptr;
    int picture_bytes = 0;
    av_parser_parse2(parser.get(), codec.get(), &picture, &picture_bytes, packet.data, packet.size,
                     packet.pts, packet.dts, packet.pos);
    // Some parsers report the size themselves, others through the codec.
    parameters.width = parser->width > 0 ? parser->width : codec->width;
    parameters.height = parser->height > 0 ? parser->height : codec->height;
}

}  // namespace

void complete_picture_format(AVCodecParameters& parameters, const AVPacket& packet) {
    if (parameters.codec_type != AVMEDIA_TYPE_VIDEO) return;
    if (parameters.width <= 0 || parameters.height <= 0) complete_size(parameters, packet);
    if (parameters.codec_id == AV_CODEC_ID_VP9 && parameters.format == AV_PIX_FMT_NONE) {
        complete_vp9_format(parameters, packet);
    }
}

}  // namespace polymux::media
