// The container is RFC 9639: "fLaC", one block with the stream's properties, then the frames.
#include "polymux/media/flac.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>

#include "media/ffmpeg.hpp"

namespace polymux::media {

namespace {

/// Marks the only block, STREAMINFO with 34 bytes, as the last.
constexpr std::array<std::uint8_t, 8> head{'f', 'L', 'a', 'C', 0x80, 0, 0, 34};
constexpr std::size_t properties_bytes = 34;
constexpr int max_flac_channels = 8;

Error no_memory() {
    return Error{.code = ErrorCode::out_of_memory, .message = "not enough memory to encode FLAC"};
}

Error failed(int status) {
    return ffmpeg_error(ErrorCode::encoder_failed, "the FLAC encoder failed", status, {});
}

class FlacEncoder {
public:
    Result<void> open(int channels, int sample_rate_hz);
    Result<std::vector<std::byte>> encode(std::span<const std::int16_t> samples);

private:
    /// Null ends the stream.
    Result<void> send(AVFrame* frame);
    void append(std::span<const std::uint8_t> bytes);
    /// The encoder knows the sizes of frames and the MD5 of the samples only at the end.
    void replace_properties(std::span<const std::uint8_t> bytes);

    UniqueCodecContext context_;
    UniqueFrame frame_;
    UniquePacket packet_;
    std::vector<std::byte> file_;
};

Result<void> FlacEncoder::open(int channels, int sample_rate_hz) {
    const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_FLAC);
    if (codec == nullptr) {
        return Error{.code = ErrorCode::encoder_failed,
                     .message = "FFmpeg was built without its FLAC encoder"};
    }
    context_.reset(avcodec_alloc_context3(codec));
    frame_.reset(av_frame_alloc());
    packet_.reset(av_packet_alloc());
    if (!context_ || !frame_ || !packet_) return no_memory();
    context_->sample_fmt = AV_SAMPLE_FMT_S16;
    context_->sample_rate = sample_rate_hz;
    context_->time_base = {1, sample_rate_hz};
    context_->flags |= AV_CODEC_FLAG_BITEXACT;
    const ChannelLayout layout = ChannelLayout::of_count(channels);
    av_channel_layout_copy(&context_->ch_layout, layout.get());
    const int status = avcodec_open2(context_.get(), codec, nullptr);
    if (status < 0) return failed(status);
    append(head);
    append({context_->extradata, properties_bytes});
    return {};
}

Result<std::vector<std::byte>> FlacEncoder::encode(std::span<const std::int16_t> samples) {
    const auto channels = static_cast<std::size_t>(context_->ch_layout.nb_channels);
    const auto largest = static_cast<std::size_t>(context_->frame_size) * channels;
    std::int64_t position = 0;
    while (!samples.empty()) {
        const std::span<const std::int16_t> part = samples.first(std::min(largest, samples.size()));
        samples = samples.subspan(part.size());
        av_frame_unref(frame_.get());
        frame_->format = AV_SAMPLE_FMT_S16;
        frame_->nb_samples = static_cast<int>(part.size() / channels);
        frame_->sample_rate = context_->sample_rate;
        frame_->pts = position;
        av_channel_layout_copy(&frame_->ch_layout, &context_->ch_layout);
        if (av_frame_get_buffer(frame_.get(), 0) < 0) return no_memory();
        std::memcpy(frame_->data[0], part.data(), part.size_bytes());
        position += frame_->nb_samples;
        if (Result<void> sent = send(frame_.get()); !sent) return sent.error();
    }
    if (Result<void> sent = send(nullptr); !sent) return sent.error();
    return std::move(file_);
}

Result<void> FlacEncoder::send(AVFrame* frame) {
    if (const int status = avcodec_send_frame(context_.get(), frame); status < 0) {
        return failed(status);
    }
    for (;;) {
        const int status = avcodec_receive_packet(context_.get(), packet_.get());
        if (status == AVERROR(EAGAIN) || status == AVERROR_EOF) return {};
        if (status < 0) return failed(status);
        append({packet_->data, static_cast<std::size_t>(packet_->size)});
        std::size_t length = 0;
        const std::uint8_t* properties =
            av_packet_get_side_data(packet_.get(), AV_PKT_DATA_NEW_EXTRADATA, &length);
        if (properties != nullptr && length == properties_bytes) {
            replace_properties({properties, length});
        }
        av_packet_unref(packet_.get());
    }
}

void FlacEncoder::append(std::span<const std::uint8_t> bytes) {
    const auto plain = std::as_bytes(bytes);
    file_.insert(file_.end(), plain.begin(), plain.end());
}

void FlacEncoder::replace_properties(std::span<const std::uint8_t> bytes) {
    std::memcpy(file_.data() + head.size(), bytes.data(), bytes.size());
}

}  // namespace

Result<std::vector<std::byte>> encode_flac(std::span<const std::int16_t> samples, int channels,
                                           int sample_rate_hz) try {
    if (channels < 1 || channels > max_flac_channels || sample_rate_hz < 1 ||
        samples.size() % static_cast<std::size_t>(channels) != 0) {
        return Error{.code = ErrorCode::invalid_argument,
                     .message = "invalid audio (got " + std::to_string(samples.size()) +
                                " samples, " + std::to_string(channels) + " channels and " +
                                std::to_string(sample_rate_hz) + " Hz)"};
    }
    const LogCapture capture;
    FlacEncoder encoder;
    if (Result<void> opened = encoder.open(channels, sample_rate_hz); !opened) {
        return opened.error();
    }
    return encoder.encode(samples);
} catch (const std::bad_alloc&) {
    return no_memory();
}

}  // namespace polymux::media
