#include "media/picture_size.hpp"

#include <memory>

namespace polymux::media {

namespace {

struct CloseParser {
    void operator()(AVCodecParserContext* parser) const noexcept { av_parser_close(parser); }
};
using UniqueParser = std::unique_ptr<AVCodecParserContext, CloseParser>;

}  // namespace

void complete_picture_size(AVCodecParameters& parameters, const AVPacket& packet) {
    if (parameters.codec_type != AVMEDIA_TYPE_VIDEO) return;
    if (parameters.width > 0 && parameters.height > 0) return;
    const UniqueParser parser(av_parser_init(parameters.codec_id));
    const UniqueCodecContext codec(avcodec_alloc_context3(nullptr));
    if (!parser || !codec) return;
    if (avcodec_parameters_to_context(codec.get(), &parameters) < 0) return;
    parser->flags |= PARSER_FLAG_COMPLETE_FRAMES;
    std::uint8_t* picture = nullptr;
    int picture_bytes = 0;
    av_parser_parse2(parser.get(), codec.get(), &picture, &picture_bytes, packet.data, packet.size,
                     packet.pts, packet.dts, packet.pos);
    // Some parsers tell it themselves, others through the codec.
    parameters.width = parser->width > 0 ? parser->width : codec->width;
    parameters.height = parser->height > 0 ? parser->height : codec->height;
}

}  // namespace polymux::media
