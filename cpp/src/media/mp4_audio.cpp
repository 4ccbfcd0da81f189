#include "media/mp4_audio.hpp"

extern "C" {
#include <libavcodec/ac3_parser.h>
}

namespace polymux::media {

bool has_mp4_header(const AVCodecParameters& parameters) noexcept {
    constexpr int flac_stream_info_bytes = 34;
    constexpr int opus_head_bytes = 19;
    constexpr int opus_mapping_bytes = 2;  // Followed by one byte for each channel.
    const int bytes = parameters.extradata_size;
    if (parameters.codec_id == AV_CODEC_ID_FLAC) return bytes == flac_stream_info_bytes;
    if (parameters.codec_id != AV_CODEC_ID_OPUS) return true;
    if (bytes < opus_head_bytes) return false;
    const int channels = parameters.extradata[9];
    const bool mapped = parameters.extradata[18] != 0;
    return !mapped || bytes >= opus_head_bytes + opus_mapping_bytes + channels;
}

bool DolbyFrames::accept(const AVPacket& packet) noexcept {
    if (codec_ != AV_CODEC_ID_AC3 && codec_ != AV_CODEC_ID_EAC3) return true;
    constexpr int last_of_mp4_ac3 = 8;
    constexpr int last_of_ac3 = 10;
    std::uint8_t bitstream_id = 0;
    std::uint16_t frame_bytes = 0;
    const auto size = static_cast<std::size_t>(packet.size);
    if (av_ac3_parse_header(packet.data, size, &bitstream_id, &frame_bytes) < 0) return false;
    if (codec_ == AV_CODEC_ID_AC3 && bitstream_id > last_of_mp4_ac3) return false;
    ++accepted_;
    const unsigned kind = packet.data[2] >> 6U;
    const unsigned substream = (packet.data[2] >> 3U) & 7U;
    const bool opens_a_stream = (kind == 0 || kind == 2) && substream == 0;
    if (bitstream_id <= last_of_ac3 || opens_a_stream) ++independent_;
    return true;
}

bool DolbyFrames::complete() const noexcept {
    if (accepted_ == 0 || codec_ == AV_CODEC_ID_AC3) return true;
    // The second shows the muxer that it has seen all substreams of the first.
    return codec_ != AV_CODEC_ID_EAC3 || independent_ >= 2;
}

}  // namespace polymux::media
