#include "video/frame_decoder.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "media/seconds_text.hpp"

namespace polymux::video {

namespace {

constexpr double usual_rate_hz = 25.0;
/// Decoders count columns that only alignment adds: at most 63 in each of so many rows.
constexpr std::int64_t alignment_pixels = 63 * 16'384;
/// A more extreme pixel aspect ratio is not credible.
constexpr double widest_pixel = 16.0;

// Codecs of common videos. Untrusted files can select any of these decoders, so the list has only
// widely reviewed ones.
constexpr std::array decodable = {AV_CODEC_ID_AV1,        AV_CODEC_ID_GIF,   AV_CODEC_ID_H264,
                                  AV_CODEC_ID_HEVC,       AV_CODEC_ID_MJPEG, AV_CODEC_ID_MPEG1VIDEO,
                                  AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_MPEG4, AV_CODEC_ID_VP8,
                                  AV_CODEC_ID_VP9};

/// A software decoder, which needs only the bytes; null if FFmpeg lacks one.
const AVCodec* find_decoder(AVCodecID id) {
    if (std::find(decodable.begin(), decodable.end(), id) == decodable.end()) return nullptr;
    constexpr int elsewhere = AV_CODEC_CAP_HARDWARE | AV_CODEC_CAP_HYBRID;
    void* state = nullptr;
    while (const AVCodec* found = av_codec_iterate(&state)) {
        if (found->id != id || av_codec_is_decoder(found) == 0) continue;
        if ((found->capabilities & elsewhere) != 0) continue;
        // FFmpeg's own decoder parses headers and leaves the images to hardware.
        if (std::strcmp(found->name, "av1") == 0) continue;
        return found;
    }
    return nullptr;
}

}  // namespace

Result<std::unique_ptr<FrameDecoder>> FrameDecoder::open(media::OpenedInput& input,
                                                         const VideoLimits& limits) {
    std::unique_ptr<FrameDecoder> decoder(new FrameDecoder(input, limits));
    if (Result<void> done = decoder->choose_stream(); !done) return done.error();
    if (Result<void> done = decoder->open_decoder(); !done) return done.error();
    return decoder;
}

Result<void> FrameDecoder::choose_stream() {
    const AVFormatContext& format = input_.format();
    std::int64_t max_pixels = -1;
    for (AVStream* stream : std::span(format.streams, format.nb_streams)) {
        const AVCodecParameters& parameters = *stream->codecpar;
        const bool moves = parameters.codec_type == AVMEDIA_TYPE_VIDEO &&
                           (stream->disposition & AV_DISPOSITION_ATTACHED_PIC) == 0;
        const std::int64_t pixels = std::int64_t{parameters.width} * parameters.height;
        if (!moves || pixels <= max_pixels) continue;
        stream_ = stream;
        max_pixels = pixels;
    }
    if (stream_ == nullptr) {
        return Error{.code = ErrorCode::unsupported_media,
                     .message = "the input has no video stream",
                     .input_name = input_.name()};
    }
    if (media::is_encrypted(*stream_)) {
        return Error{.code = ErrorCode::encrypted,
                     .message = "the video is encrypted (DRM) and cannot be decoded",
                     .input_name = input_.name()};
    }
    for (AVStream* stream : std::span(format.streams, format.nb_streams)) {
        stream->discard = stream == stream_ ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    }
    return check_size(stream_->codecpar->width, stream_->codecpar->height);
}

Result<void> FrameDecoder::check_size(int width, int height) const {
    if (std::int64_t{width} * height <= limits_.frame_pixels) return {};
    return Error{.code = ErrorCode::limit_exceeded,
                 .message = "the frames of the video are too large (got " + std::to_string(width) +
                            "x" + std::to_string(height) + " pixels, limit frame_pixels=" +
                            std::to_string(limits_.frame_pixels) + ")",
                 .input_name = input_.name()};
}

Result<void> FrameDecoder::open_decoder() {
    const AVCodecParameters& parameters = *stream_->codecpar;
    const AVCodec* codec = find_decoder(parameters.codec_id);
    if (codec == nullptr) {
        return Error{.code = ErrorCode::unsupported_media,
                     .message = "the video codec '" +
                                std::string(avcodec_get_name(parameters.codec_id)) +
                                "' is not supported. Use H.264, HEVC, VP8, VP9, MPEG-4 or GIF",
                     .input_name = input_.name()};
    }
    decoder_.reset(avcodec_alloc_context3(codec));
    packet_.reset(av_packet_alloc());
    frame_.reset(av_frame_alloc());
    if (!decoder_ || !packet_ || !frame_) {
        return Error{.code = ErrorCode::out_of_memory,
                     .message = "not enough memory to decode the video",
                     .input_name = input_.name()};
    }
    int status = avcodec_parameters_to_context(decoder_.get(), &parameters);
    if (status >= 0) {
        decoder_->pkt_timebase = stream_->time_base;
        decoder_->thread_count = 1;
        decoder_->max_pixels = limits_.frame_pixels + alignment_pixels;
        status = avcodec_open2(decoder_.get(), codec, nullptr);
    }
    if (status >= 0) return {};
    return input_.explain(ErrorCode::undecodable,
                          "the video decoder '" + std::string(codec->name) + "' cannot be opened",
                          status);
}

Result<AVFrame*> FrameDecoder::next() {
    for (;;) {
        if (std::optional<Error> failure = input_.io().failure()) return *failure;
        const int status = avcodec_receive_frame(decoder_.get(), frame_.get());
        if (status == 0) {
            if (Result<void> accepted = accept(*frame_); !accepted) return accepted.error();
            return frame_.get();
        }
        if (status == AVERROR_EOF) return static_cast<AVFrame*>(nullptr);
        if (status != AVERROR(EAGAIN)) {
            ++damaged_packets_;
            if (packets_ended_) return static_cast<AVFrame*>(nullptr);
        }
        if (Result<void> fed = feed(); !fed) return fed.error();
    }
}

Result<void> FrameDecoder::feed() {
    if (packets_ended_) return {};
    int status = av_read_frame(&input_.format(), packet_.get());
    if (std::optional<Error> failure = input_.io().failure()) return *failure;
    if (status == AVERROR(EAGAIN) && ++empty_reads_ < media::max_empty_reads) return {};
    if (status < 0) {
        packets_ended_ = true;
        // Damage at the end of a file also counts as the end.
        avcodec_send_packet(decoder_.get(), nullptr);
        return {};
    }
    if (packet_->stream_index == stream_->index) {
        status = avcodec_send_packet(decoder_.get(), packet_.get());
        if (status < 0) ++damaged_packets_;
    }
    av_packet_unref(packet_.get());
    return {};
}

double FrameDecoder::usual_length_s() const {
    const AVRational rate = stream_->avg_frame_rate;
    const double per_second = rate.num > 0 && rate.den > 0 ? av_q2d(rate) : usual_rate_hz;
    return 1.0 / std::clamp(per_second, 0.01, 1000.0);
}

Result<void> FrameDecoder::accept(const AVFrame& frame) {
    if (Result<void> checked = check_size(frame.width, frame.height); !checked) return checked;
    if (++decoded_frames_ > limits_.decoded_frames) {
        return Error{.code = ErrorCode::limit_exceeded,
                     .message = "the video has too many frames to decode (limit decoded_frames=" +
                                std::to_string(limits_.decoded_frames) + ")",
                     .input_name = input_.name(),
                     .position_s = time_s_};
    }
    const double expected_s = first_timestamp_ ? time_s_ + length_s_ : 0.0;
    double found_s = expected_s;
    if (frame.best_effort_timestamp != AV_NOPTS_VALUE) {
        if (!first_timestamp_) first_timestamp_ = frame.best_effort_timestamp;
        // Computed as floating point, because the difference of two forged timestamps may overflow
        // an integer.
        found_s = (static_cast<double>(frame.best_effort_timestamp) -
                   static_cast<double>(*first_timestamp_)) *
                  av_q2d(stream_->time_base);
    } else if (!first_timestamp_) {
        first_timestamp_ = 0;
    }
    // Time that runs backward is damage.
    time_s_ = found_s > time_s_ || decoded_frames_ == 1 ? found_s : expected_s;
#if LIBAVUTIL_VERSION_MAJOR < 58
    const std::int64_t duration = frame.pkt_duration;
#else
    const std::int64_t duration = frame.duration;
#endif
    length_s_ = duration > 0 ? static_cast<double>(duration) * av_q2d(stream_->time_base)
                             : usual_length_s();
    if (time_s_ <= input_.limits().duration_s) return {};
    return Error{.code = ErrorCode::limit_exceeded,
                 .message = "the video is too long (limit duration_s=" +
                            media::seconds_text(input_.limits().duration_s) + ")",
                 .input_name = input_.name(),
                 .position_s = time_s_};
}

double FrameDecoder::pixel_aspect(AVFrame& frame) const {
    const AVRational aspect = av_guess_sample_aspect_ratio(&input_.format(), stream_, &frame);
    if (aspect.num <= 0 || aspect.den <= 0) return 1.0;
    return std::clamp(av_q2d(aspect), 1.0 / widest_pixel, widest_pixel);
}

Orientation FrameDecoder::orientation(const AVFrame& frame) const {
    const AVFrameSideData* own = av_frame_get_side_data(&frame, AV_FRAME_DATA_DISPLAYMATRIX);
    if (own != nullptr) return orientation_of({own->data, own->size});
    return orientation_of(media::side_data(*stream_, AV_PKT_DATA_DISPLAYMATRIX));
}

std::string FrameDecoder::codec_name() const {
    return avcodec_get_name(stream_->codecpar->codec_id);
}

}  // namespace polymux::video
