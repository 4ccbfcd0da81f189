#include "media/reader.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "media/formats.hpp"
#include "media/seconds_text.hpp"

namespace polymux::media {

namespace {

// Above any codec's real frame size; prevents allocations of gigabytes for a forged header.
constexpr std::int64_t max_samples_per_frame = 1 << 24;

/// The numbers of the audio streams, at most 20: "1, 2".
std::string audio_streams(const AVFormatContext& format) {
    constexpr int max_shown = 20;
    std::string text;
    int shown = 0;
    for (const AVStream* stream : std::span(format.streams, format.nb_streams)) {
        if (stream->codecpar->codec_type != AVMEDIA_TYPE_AUDIO) continue;
        if (shown++ == max_shown) return text + ", ...";
        text += (text.empty() ? "" : ", ") + std::to_string(stream->index);
    }
    return text.empty() ? "none: the input has no audio stream" : text;
}

Error out_of_memory(const std::string& name) {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory to decode the input",
                 .input_name = name};
}

Error encrypted_audio(const std::string& name) {
    return Error{.code = ErrorCode::encrypted,
                 .message = "the audio is encrypted (DRM) and cannot be decoded",
                 .input_name = name};
}

}  // namespace

Result<std::unique_ptr<AudioReader>> AudioReader::open(OpenedInput& input,
                                                       const ReaderOptions& options) {
    std::unique_ptr<AudioReader> reader(new AudioReader(input, options));
    if (Result<void> done = reader->choose_stream(); !done) return done.error();
    if (Result<void> done = reader->check_declared_duration(); !done) return done.error();
    if (Result<void> done = reader->open_decoder(); !done) return done.error();
    input.find_start();
    reader->seek_to_start();
    while (!reader->queue_ && !reader->ended_) {
        if (Result<void> done = reader->advance(); !done) return done.error();
    }
    if (!reader->queue_) {
        const bool damaged = reader->damaged_packets_ > 0;
        return Error{.code = damaged ? ErrorCode::undecodable : ErrorCode::no_audio,
                     .message = damaged ? "no part of the audio stream could be decoded"
                                        : "the audio stream has no samples in the selected range",
                     .input_name = input.name()};
    }
    return reader;
}

Result<void> AudioReader::choose_stream() {
    AVFormatContext& format = input_.format();
    const int count = static_cast<int>(format.nb_streams);
    int index = options_.audio_stream.value_or(-1);
    if (!options_.audio_stream) {
        const std::optional<int> best = best_audio_stream(format);
        if (!best) {
            return Error{.code = ErrorCode::no_audio,
                         .message = "the input has no audio stream",
                         .input_name = input_.name()};
        }
        index = *best;
    } else if (index < 0 || index >= count ||
               format.streams[index]->codecpar->codec_type != AVMEDIA_TYPE_AUDIO) {
        return Error{.code = ErrorCode::no_audio,
                     .message = "audio_stream: not an audio stream of the input (got " +
                                std::to_string(index) + ", allowed " + audio_streams(format) + ")",
                     .input_name = input_.name()};
    }
    stream_ = format.streams[index];
    if (is_encrypted(*stream_)) return encrypted_audio(input_.name());
    return {};
}

// A declared length over the limit may be wrong, so the packets are counted first, which is cheap
// compared to decoding. Then the container is opened again.
Result<void> AudioReader::check_declared_duration() {
    const double limit_s = input_.limits().duration_s;
    const std::optional<double> expected = expected_duration_s();
    if (!expected || *expected <= limit_s || !input_.io().source().seekable()) return {};
    UniquePacket packet(av_packet_alloc());
    if (!packet) return out_of_memory(input_.name());
    double counted_s = options_.start_s ? -*options_.start_s : 0.0;
    while (counted_s <= limit_s && av_read_frame(&input_.format(), packet.get()) >= 0) {
        if (packet->stream_index == stream_->index) {
            counted_s += static_cast<double>(packet->duration) * av_q2d(stream_->time_base);
        }
        av_packet_unref(packet.get());
    }
    if (std::optional<Error> failure = input_.io().failure()) return *failure;
    if (counted_s > limit_s) {
        return Error{.code = ErrorCode::limit_exceeded,
                     .message = "the input is too long (got " + seconds_text(*expected) +
                                " s, limit duration_s=" + seconds_text(limit_s) + ")",
                     .input_name = input_.name()};
    }
    ByteSource& source = input_.io().source();
    if (Result<void> rewound = source.seek(0); !rewound) return rewound.error();
    Result<OpenedInput> again = OpenedInput::open(source, input_.limits(), input_.io().token());
    if (!again) return again.error();
    input_ = std::move(*again);
    return choose_stream();
}

Result<void> AudioReader::open_decoder() {
    const AVCodecParameters& parameters = *stream_->codecpar;
    const AVCodec* codec = avcodec_find_decoder(parameters.codec_id);
    if (codec == nullptr) {
        return Error{.code = ErrorCode::unsupported_media,
                     .message = "the audio codec '" +
                                std::string(avcodec_get_name(parameters.codec_id)) +
                                "' is not supported: this FFmpeg has no decoder for it",
                     .input_name = input_.name()};
    }
    decoder_.reset(avcodec_alloc_context3(codec));
    packet_.reset(av_packet_alloc());
    frame_.reset(av_frame_alloc());
    if (!decoder_ || !packet_ || !frame_) return out_of_memory(input_.name());
    int status = avcodec_parameters_to_context(decoder_.get(), &parameters);
    if (status >= 0) {
        // Needed for the exact removal of encoder padding.
        decoder_->pkt_timebase = stream_->time_base;
        decoder_->thread_count = 1;
        decoder_->max_samples = max_samples_per_frame;
        status = avcodec_open2(decoder_.get(), codec, nullptr);
    }
    if (status < 0) {
        return input_.explain(
            ErrorCode::undecodable,
            "the audio decoder '" + std::string(codec->name) + "' cannot be opened", status);
    }
    return {};
}

void AudioReader::seek_to_start() {
    AVFormatContext& format = input_.format();
    trimmer_.emplace(options_.start_s, options_.end_s, format, *stream_);
    const bool sought = trimmer_->seek(input_);
    // Only now, because discarding streams affects which stream a container uses for seeking.
    for (AVStream* stream : std::span(format.streams, format.nb_streams)) {
        stream->discard = stream == stream_ ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    }
    if (sought) return;
    warn("not_seekable", "the input is not seekable, so everything before the start was decoded");
}

std::string AudioReader::codec_name() const {
    return avcodec_get_name(stream_->codecpar->codec_id);
}

std::optional<double> AudioReader::expected_duration_s() const {
    const AVFormatContext& format = input_.format();
    std::optional<double> total;
    if (stream_->duration > 0) {
        total = static_cast<double>(stream_->duration) * av_q2d(stream_->time_base);
    } else if (format.duration > 0) {
        total = static_cast<double>(format.duration) / AV_TIME_BASE;
    }
    const double start_s = options_.start_s.value_or(0);
    if (options_.end_s) total = total ? std::min(*total, *options_.end_s) : *options_.end_s;
    if (!total) return std::nullopt;
    return std::max(0.0, *total - start_s);
}

Result<mp3::PcmBlock> AudioReader::read(int samples) {
    queue_->drop(given_);
    given_ = 0;
    while (queue_->size() < samples && !ended_) {
        if (Result<void> done = advance(); !done) return done.error();
    }
    const mp3::PcmBlock block = queue_->front(samples);
    given_ = block.samples;
    return block;
}

Result<void> AudioReader::advance() {
    if (std::optional<Error> failure = input_.io().failure()) return *failure;
    if (frame_->nb_samples > 0) {
        if (Result<void> done = convert_part(); !done) return done.error();
        return receive_frames();
    }
    if (packets_ended_) {
        if (Result<void> done = receive_frames(); !done) return done.error();
        return frame_->nb_samples > 0 ? Result<void>() : finish();
    }
    int status = input_.read(*packet_);
    if (status == AVERROR(EAGAIN) && ++empty_reads_ < max_empty_reads) return {};
    if (status < 0) {
        packets_ended_ = true;
        if (std::optional<Error> failure = input_.io().failure()) return *failure;
        trimmer_->drain();
        avcodec_send_packet(decoder_.get(), nullptr);
        if (status == AVERROR_EOF) return {};
        return damage("input_truncated", "reading stopped before the end of the input", status);
    }
    empty_reads_ = 0;
    if (packet_->stream_index != stream_->index) {
        av_packet_unref(packet_.get());
        return {};
    }
    // Some containers report only here that the content is encrypted and would decode to noise.
    if (av_packet_get_side_data(packet_.get(), AV_PKT_DATA_ENCRYPTION_INFO, nullptr) != nullptr) {
        return encrypted_audio(input_.name());
    }
    trimmer_->shift(*packet_);
    status = avcodec_send_packet(decoder_.get(), packet_.get());
    av_packet_unref(packet_.get());
    if (status < 0) return damage("damaged_packet", "a packet could not be decoded", status);
    return receive_frames();
}

Result<void> AudioReader::finish() {
    ended_ = true;
    const int status = resampler_ ? resampler_->flush(*queue_) : 0;
    if (status < 0)
        return input_.explain(ErrorCode::internal, "the audio cannot be resampled", status);
    return {};
}

Result<void> AudioReader::receive_frames() {
    while (!ended_ && frame_->nb_samples == 0) {
        const int status = avcodec_receive_frame(decoder_.get(), frame_.get());
        if (status == AVERROR(EAGAIN) || status == AVERROR_EOF) return {};
        if (status < 0) return damage("damaged_packet", "a packet could not be decoded", status);
        Result<void> accepted = accept(*frame_);
        if (!accepted || frame_position_ == 0) av_frame_unref(frame_.get());
        if (!accepted) return accepted.error();
    }
    return {};
}

// A part of the current frame: all of it, unless it would become very long.
Result<void> AudioReader::convert_part() {
    const AVFrame& frame = *frame_;
    const int samples =
        std::min(frame.nb_samples - frame_position_, resampler_->samples_at_once(frame));
    const int status = resampler_->convert(frame, frame_position_, samples, *queue_);
    if (status < 0) {
        return input_.explain(ErrorCode::undecodable,
                              "the audio cannot be converted (channels: " +
                                  std::to_string(frame.ch_layout.nb_channels) +
                                  ", sample rate: " + std::to_string(frame.sample_rate) + " Hz)",
                              status);
    }
    decoded_s_ += static_cast<double>(samples) / frame.sample_rate;
    frame_position_ += samples;
    if (frame_position_ == frame.nb_samples) {
        frame_position_ = 0;
        av_frame_unref(frame_.get());
    }
    if (decoded_s_ <= input_.limits().duration_s) return {};
    return Error{.code = ErrorCode::limit_exceeded,
                 .message = "the audio is too long (limit duration_s=" +
                            seconds_text(input_.limits().duration_s) + ")",
                 .input_name = input_.name(),
                 .position_s = decoded_s_};
}

Result<void> AudioReader::accept(AVFrame& frame) {
    if (Result<void> checked = check_frame(frame); !checked) return checked.error();
    if (frame.decode_error_flags != 0) {
        Result<void> noted =
            damage("damaged_packet", "a packet was decoded with errors", AVERROR_INVALIDDATA);
        if (!noted) return noted.error();
    }
    const Trimmer::Verdict verdict = trimmer_->apply(frame);
    if (verdict == Trimmer::Verdict::failed) return out_of_memory(input_.name());
    if (verdict == Trimmer::Verdict::past_end) {
        packets_ended_ = true;
        return finish();
    }
    if (verdict == Trimmer::Verdict::nothing_left) return {};
    if (!queue_) choose_format(frame);
    note_change(frame);
    return convert_part();
}

Result<void> AudioReader::check_frame(const AVFrame& frame) const {
    const Limits& limits = input_.limits();
    const int channels = frame.ch_layout.nb_channels;
    if (frame.sample_rate <= 0 || channels <= 0) {
        return Error{
            .code = ErrorCode::undecodable,
            .message = "the audio has an invalid format (channels: " + std::to_string(channels) +
                       ", sample rate: " + std::to_string(frame.sample_rate) + " Hz)",
            .input_name = input_.name()};
    }
    if (frame.sample_rate > limits.sample_rate_hz || channels > limits.channels) {
        return Error{
            .code = ErrorCode::limit_exceeded,
            .message = "the audio exceeds a limit (got channels=" + std::to_string(channels) +
                       " and sample_rate_hz=" + std::to_string(frame.sample_rate) +
                       ", limits channels=" + std::to_string(limits.channels) +
                       " and sample_rate_hz=" + std::to_string(limits.sample_rate_hz) + ")",
            .input_name = input_.name()};
    }
    return {};
}

void AudioReader::choose_format(const AVFrame& frame) {
    const ChannelLayout layout = ChannelLayout::known(frame.ch_layout);
    PcmFormat format;
    format.sample_format = options_.sample_format.value_or(
        nearest_sample_format(static_cast<AVSampleFormat>(frame.format)));
    format.sample_rate_hz =
        options_.sample_rate_hz.value_or(nearest_sample_rate(frame.sample_rate));
    format.channels = options_.channels.value_or(nearest_layout(layout).channels());
    queue_.emplace(format);
    resampler_.emplace(format);
    input_rate_hz_ = frame.sample_rate;
    input_layout_ = layout;
    input_format_ = frame.format;
}

// ffmpeg starts its filters again, and loses the samples that wait in them: up to one MP3 frame.
// Here none is lost.
void AudioReader::note_change(const AVFrame& frame) {
    const ChannelLayout layout = ChannelLayout::known(frame.ch_layout);
    if (frame.sample_rate == input_rate_hz_ && frame.format == input_format_ &&
        layout == input_layout_) {
        return;
    }
    warn("format_changed", "the audio format changes within the input (new format: channels: " +
                               std::to_string(layout.channels()) +
                               ", sample rate: " + std::to_string(frame.sample_rate) +
                               " Hz). All audio is converted to one output format");
    format_changed_ = true;
    input_rate_hz_ = frame.sample_rate;
    input_layout_ = layout;
    input_format_ = frame.format;
}

bool AudioReader::matches_ffmpeg() const noexcept {
    return !format_changed_ && damaged_packets_ == 0 && (input_.knows_start() || !options_.start_s);
}

Result<void> AudioReader::damage(const char* code, std::string message, int averror) {
    if (std::optional<Error> failure = input_.io().failure()) return *failure;
    ++damaged_packets_;
    if (options_.strict) {
        Error error = input_.explain(ErrorCode::undecodable, std::move(message), averror);
        error.position_s = decoded_s_;
        return error;
    }
    warn(code, message + ": " + ffmpeg_text(averror));
    return {};
}

void AudioReader::warn(const char* code, std::string message) {
    const auto same = std::find_if(warnings_.begin(), warnings_.end(),
                                   [code](const Warning& known) { return known.code == code; });
    if (same != warnings_.end()) {
        ++same->count;
        return;
    }
    warnings_.push_back({.code = code, .message = std::move(message), .position_s = decoded_s_});
}

}  // namespace polymux::media
