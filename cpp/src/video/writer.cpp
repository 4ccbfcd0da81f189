#include "polymux/video/writer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <numeric>
#include <optional>
#include <utility>

#include "media/avio_output.hpp"
#include "media/ffmpeg.hpp"
#include "media/remux_output.hpp"
#include "polymux/pool.hpp"
#include "video/arguments.hpp"
#include "video/encoder.hpp"
#include "video/scaling.hpp"

namespace polymux::video {

namespace {

using media::AvioOutput;
using media::LogCapture;
using media::UniqueCodecContext;
using media::UniqueFrame;
using media::UniquePacket;

constexpr int max_threads = 16;

Error no_memory_to_write() {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory to write the video"};
}

int made_even(int side) {
    return side + side % 2;
}

Result<void> check(const media::ByteSink& sink, const VideoFormat& format,
                   const VideoWriterOptions& options) {
    if (!is_side(format.width) || !is_side(format.height)) {
        return invalid("invalid size of the video (got " + std::to_string(format.width) + "x" +
                       std::to_string(format.height) + " pixels, allowed 1 to " +
                       std::to_string(max_side) + " for each side)");
    }
    if (!format.fps.usable()) {
        return invalid_fps(format.fps);
    }
    if (options.quality < 1 || options.quality > 100) {
        return invalid("quality: out of range (got " + std::to_string(options.quality) +
                       ", allowed 1 to 100)");
    }
    if (options.threads < 0) {
        return invalid("threads: invalid value (got " + std::to_string(options.threads) +
                       ", allowed 0 or more). 0 uses all cores");
    }
    if (!sink.can_patch() || !sink.can_read_back()) {
        return invalid(
            "the output must be a seekable file, because the beginning of the MP4 is completed "
            "last");
    }
    return {};
}

/// Converts RGB to the codecs' format: BT.709 in limited range.
UniqueScaler new_converter(int width, int height) {
    UniqueScaler scaler(sws_getContext(width, height, AV_PIX_FMT_RGB24, width, height,
                                       AV_PIX_FMT_YUV420P, scaler_flags, nullptr, nullptr,
                                       nullptr));
    if (!scaler) return scaler;
    const int* table = sws_getCoefficients(SWS_CS_ITU709);
    const int status =
        sws_setColorspaceDetails(scaler.get(), table, 1, table, 0, 0, unchanged, unchanged);
    if (status < 0) scaler.reset();
    return scaler;
}

class Mp4Writer final : public VideoWriter {
public:
    Mp4Writer(media::ByteSink& sink, const VideoFormat& format, const CancelToken& token)
        : sink_(sink), format_(format), token_(token) {}

    ~Mp4Writer() override {
        // Encoders log when they are closed.
        const LogCapture capture;
        encoder_.reset();
    }
    Mp4Writer(const Mp4Writer&) = delete;
    Mp4Writer& operator=(const Mp4Writer&) = delete;

    Result<void> open(const VideoWriterOptions& options);
    Result<void> write(std::span<const std::byte> rgb) override;
    Result<VideoReport> finish() override;
    [[nodiscard]] const std::string& encoder() const noexcept override { return encoder_name_; }

private:
    Result<void> open_muxer(const VideoWriterOptions& options);
    Result<void> begin();
    Result<void> check_usable() const;
    Result<void> convert(std::span<const std::byte> rgb);
    /// Null ends the stream.
    Result<void> encode(AVFrame* frame);
    Result<void> drain();
    [[nodiscard]] Error explain(std::string message, int status) const;

    media::ByteSink& sink_;
    VideoFormat format_;
    CancelToken token_;
    // Order matters: the muxer writes through io_ until it is closed.
    std::unique_ptr<AvioOutput> io_;
    media::UniqueMuxer muxer_;
    UniqueCodecContext encoder_;
    UniqueScaler converter_;
    UniqueFrame rgb_;
    UniqueFrame yuv_;
    UniquePacket packet_;
    std::string encoder_name_;
    std::int64_t frames_ = 0;
    bool usable_ = false;
};

Result<void> Mp4Writer::open(const VideoWriterOptions& options) {
    const int divisor = std::gcd(format_.fps.numerator, format_.fps.denominator);
    format_.fps.numerator /= divisor;
    format_.fps.denominator /= divisor;
    if (Result<void> opened = open_muxer(options); !opened) return opened;
    converter_ = new_converter(encoder_->width, encoder_->height);
    rgb_ = new_frame(encoder_->width, encoder_->height, AV_PIX_FMT_RGB24);
    yuv_ = new_frame(encoder_->width, encoder_->height, AV_PIX_FMT_YUV420P);
    packet_.reset(av_packet_alloc());
    if (!converter_ || !rgb_ || !yuv_ || !packet_) return no_memory_to_write();
    if (Result<void> begun = begin(); !begun) return begun;
    usable_ = true;
    return {};
}

Result<void> Mp4Writer::open_muxer(const VideoWriterOptions& options) {
    Result<std::unique_ptr<AvioOutput>> io = AvioOutput::create(sink_, token_);
    if (!io) return io.error();
    io_ = std::move(*io);
    AVFormatContext* context = nullptr;
    if (avformat_alloc_output_context2(&context, nullptr, "mp4", "") < 0)
        return no_memory_to_write();
    muxer_.reset(context);
    io_->attach(*context);
    // No clock and no version: the same frames produce the same file.
    context->flags |= AVFMT_FLAG_BITEXACT;
    const int threads = options.threads > 0 ? options.threads : available_cores();
    const EncoderConfig config{
        .width = made_even(format_.width),
        .height = made_even(format_.height),
        .fps = format_.fps,
        .quality = options.quality,
        .threads = std::min(threads, max_threads),
        .global_header = (context->oformat->flags & AVFMT_GLOBALHEADER) != 0};
    Result<UniqueCodecContext> encoder = open_encoder(options.codec, config);
    if (!encoder) return encoder.error();
    encoder_ = std::move(*encoder);
    encoder_name_ = encoder_->codec->name;
    return {};
}

Result<void> Mp4Writer::begin() {
    AVStream* stream = avformat_new_stream(muxer_.get(), nullptr);
    if (stream == nullptr) return no_memory_to_write();
    if (avcodec_parameters_from_context(stream->codecpar, encoder_.get()) < 0) {
        return no_memory_to_write();
    }
    stream->time_base = encoder_->time_base;
    stream->avg_frame_rate = encoder_->framerate;
    media::Dictionary options;
    options.set("movflags", "+faststart");
    const int status = avformat_write_header(muxer_.get(), options.address());
    if (status < 0) return explain("the MP4 cannot be started", status);
    return {};
}

Result<void> Mp4Writer::check_usable() const {
    if (token_.cancelled()) {
        return Error{.code = ErrorCode::cancelled, .message = "the operation was canceled"};
    }
    if (usable_) return {};
    return invalid("the video is already finished, or an earlier write to it failed");
}

Result<void> Mp4Writer::write(std::span<const std::byte> rgb) try {
    if (Result<void> ready = check_usable(); !ready) return ready;
    const LogCapture capture;
    usable_ = false;
    if (Result<void> converted = convert(rgb); !converted) return converted;
    yuv_->pts = frames_;
    if (Result<void> encoded = encode(yuv_.get()); !encoded) return encoded;
    ++frames_;
    usable_ = true;
    return {};
} catch (const std::bad_alloc&) {
    return no_memory_to_write();
}

Result<void> Mp4Writer::convert(std::span<const std::byte> rgb) {
    const auto row_bytes = static_cast<std::size_t>(format_.width) * bytes_per_pixel;
    const std::size_t wanted = row_bytes * static_cast<std::size_t>(format_.height);
    if (rgb.size() != wanted) {
        return invalid("invalid size of a frame (got " + std::to_string(rgb.size()) +
                       " bytes, allowed " + std::to_string(wanted) + ": " +
                       std::to_string(format_.width) + "x" + std::to_string(format_.height) +
                       " pixels of 3 bytes)");
    }
    for (int row = 0; row < encoder_->height; ++row) {
        const auto from = static_cast<std::size_t>(std::min(row, format_.height - 1)) * row_bytes;
        std::uint8_t* to = rgb_->data[0] + static_cast<std::ptrdiff_t>(row) * rgb_->linesize[0];
        std::memcpy(to, rgb.data() + from, row_bytes);
        if (encoder_->width > format_.width) {
            std::memcpy(to + row_bytes, to + row_bytes - bytes_per_pixel, bytes_per_pixel);
        }
    }
    // The encoder may still use the previous frame.
    if (av_frame_make_writable(yuv_.get()) < 0) return no_memory_to_write();
    yuv_->color_range = encoder_->color_range;
    yuv_->colorspace = encoder_->colorspace;
    yuv_->color_primaries = encoder_->color_primaries;
    yuv_->color_trc = encoder_->color_trc;
    yuv_->chroma_location = encoder_->chroma_sample_location;
    const int rows = sws_scale(converter_.get(), rgb_->data, rgb_->linesize, 0, rgb_->height,
                               yuv_->data, yuv_->linesize);
    if (rows < rgb_->height)
        return explain("a frame cannot be converted for the encoder", AVERROR_EXTERNAL);
    return {};
}

Result<void> Mp4Writer::encode(AVFrame* frame) {
    int status = avcodec_send_frame(encoder_.get(), frame);
    if (status == AVERROR(EAGAIN)) {
        if (Result<void> drained = drain(); !drained) return drained;
        status = avcodec_send_frame(encoder_.get(), frame);
    }
    if (status < 0) return explain("the encoder " + encoder_name_ + " rejected a frame", status);
    return drain();
}

Result<void> Mp4Writer::drain() {
    const AVStream& stream = *muxer_->streams[0];
    for (;;) {
        if (token_.cancelled()) return explain("", AVERROR_EXIT);
        int status = avcodec_receive_packet(encoder_.get(), packet_.get());
        if (status == AVERROR(EAGAIN) || status == AVERROR_EOF) return {};
        if (status < 0) return explain("the encoder " + encoder_name_ + " failed", status);
        // The muxer takes the last frame's duration from here.
        packet_->duration = 1;
        packet_->stream_index = 0;
        av_packet_rescale_ts(packet_.get(), encoder_->time_base, stream.time_base);
        status = av_write_frame(muxer_.get(), packet_.get());
        av_packet_unref(packet_.get());
        if (status < 0) return explain("a frame cannot be written to the MP4", status);
    }
}

Result<VideoReport> Mp4Writer::finish() try {
    if (Result<void> ready = check_usable(); !ready) return ready.error();
    if (frames_ == 0) return invalid("no frame was written: a video needs at least one");
    const LogCapture capture;
    usable_ = false;
    if (Result<void> encoded = encode(nullptr); !encoded) return encoded.error();
    const int status = av_write_trailer(muxer_.get());
    // The muxer itself ignores the results of its last writes.
    if (std::optional<Error> failure = io_->failure()) return *failure;
    if (status < 0) return explain("the MP4 cannot be completed", status);
    if (Result<void> committed = sink_.commit(); !committed) return committed.error();
    return VideoReport{.codec = avcodec_get_name(encoder_->codec_id),
                       .encoder = encoder_name_,
                       .width = encoder_->width,
                       .height = encoder_->height,
                       .fps = format_.fps,
                       .frames = frames_,
                       .duration_s = static_cast<double>(frames_) / format_.fps.per_second(),
                       .bytes = io_->bytes()};
} catch (const std::bad_alloc&) {
    return no_memory_to_write();
}

Error Mp4Writer::explain(std::string message, int status) const {
    if (std::optional<Error> failure = io_->failure()) return *failure;
    return media::ffmpeg_error(ErrorCode::encoder_failed, std::move(message), status, {});
}

}  // namespace

Result<std::unique_ptr<VideoWriter>> VideoWriter::create(media::ByteSink& sink,
                                                         const VideoFormat& format,
                                                         const VideoWriterOptions& options,
                                                         const CancelToken& token) try {
    if (Result<void> checked = check(sink, format, options); !checked) return checked.error();
    const LogCapture capture;
    auto writer = std::make_unique<Mp4Writer>(sink, format, token);
    if (Result<void> opened = writer->open(options); !opened) return opened.error();
    return std::unique_ptr<VideoWriter>(std::move(writer));
} catch (const std::bad_alloc&) {
    return no_memory_to_write();
}

}  // namespace polymux::video
