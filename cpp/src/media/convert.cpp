#include "polymux/media/convert.hpp"

#include <new>

#include "media/conversion_plan.hpp"
#include "media/mp3/ffmpeg_check.hpp"
#include "media/mp3/mp3_writer.hpp"
#include "media/mp3/parallel_encoder.hpp"
#include "media/mp3/sequential_check.hpp"
#include "media/opened_input.hpp"
#include "media/progress_clock.hpp"
#include "media/reader.hpp"

namespace polymux::media {

namespace {

/// Reports progress at most ten times a second, and once at the end.
class ProgressTeller {
public:
    ProgressTeller(const ProgressCallback& callback, const AudioReader& reader,
                   const mp3::Mp3Writer& writer, Clock::time_point start)
        : callback_(callback),
          writer_(writer),
          expected_s_(reader.expected_duration_s()),
          sample_rate_hz_(reader.format().sample_rate_hz),
          start_(start),
          next_(start) {}

    /// Returns false if the callback asks to stop.
    bool tell(std::int64_t samples, bool last = false) {
        if (!callback_) return true;
        const Clock::time_point now = Clock::now();
        if (!last && now < next_) return true;
        next_ = now + progress_interval;
        const double position_s = static_cast<double>(samples) / sample_rate_hz_;
        return callback_({.position_s = position_s,
                          .duration_s = last ? position_s : expected_s_,
                          .bytes_written = writer_.bytes(),
                          .elapsed_s = seconds_since(start_)});
    }

private:
    const ProgressCallback& callback_;
    const mp3::Mp3Writer& writer_;
    std::optional<double> expected_s_;
    int sample_rate_hz_;
    Clock::time_point start_;
    Clock::time_point next_;
};

Error stopped_by_callback() {
    return Error{.code = ErrorCode::callback_failed,
                 .message = "the progress callback stopped the conversion"};
}

/// Source of a conversion's samples and destination of its frames. With a check, both also go
/// there.
struct Stream {
    AudioReader& reader;
    mp3::Mp3Writer& writer;
    mp3::FrameCheck* check = nullptr;

    [[nodiscard]] Result<mp3::PcmBlock> read(int samples) const {
        Result<mp3::PcmBlock> block = reader.read(samples);
        if (check == nullptr || !block) return block;
        if (Result<void> encoded = check->encode(*block); !encoded) return encoded.error();
        return block;
    }

    [[nodiscard]] Result<void> write(std::span<const std::byte> frame) const {
        if (check != nullptr) {
            if (Result<void> compared = check->compare(frame); !compared) return compared;
        }
        return writer.write_frame(frame);
    }
};

/// Encodes all samples of the stream with one encoder.
Result<mp3::ParallelSummary> encode_all(const Stream& stream, mp3::Encoder& encoder,
                                        ProgressTeller& progress, const CancelToken& token) {
    const mp3::FrameCallback write = [&stream](std::span<const std::byte> frame) {
        return stream.write(frame);
    };
    mp3::ParallelSummary summary;
    for (;;) {
        if (token.cancelled()) {
            return Error{.code = ErrorCode::cancelled, .message = "the conversion was canceled"};
        }
        Result<mp3::PcmBlock> block = stream.read(encoder.frame_samples());
        if (!block) return block.error();
        if (block->samples == 0) break;
        if (Result<void> encoded = encoder.encode(*block, write); !encoded) return encoded.error();
        summary.samples += block->samples;
        if (!progress.tell(summary.samples)) return stopped_by_callback();
    }
    if (Result<void> flushed = encoder.flush(write); !flushed) return flushed.error();
    summary.unusable_samples = encoder.unusable_samples();
    return summary;
}

/// The same with several encoders, one per available worker.
Result<mp3::ParallelSummary> encode_side_by_side(const Stream& stream,
                                                 std::unique_ptr<mp3::Encoder> encoder,
                                                 ProgressTeller& progress,
                                                 const ConversionPlan& plan,
                                                 const CancelToken& token) {
    const mp3::ParallelJob job{
        .encoder = plan.encoder,
        .plan = plan.segments,
        .threads = plan.threads,
        .read = [&stream](int samples) { return stream.read(samples); },
        .write = [&stream](std::span<const std::byte> frame) { return stream.write(frame); },
        .on_progress = [&progress](std::int64_t samples) -> Result<void> {
            if (!progress.tell(samples)) return stopped_by_callback();
            return {};
        },
        .token = token};
    return mp3::encode_in_parallel(job, std::move(encoder));
}

ConvertReport make_report(const OpenedInput& input, const AudioReader& reader,
                          const mp3::Mp3Writer& writer, const ConversionPlan& plan,
                          const mp3::ParallelSummary& encoded) {
    ConvertReport report;
    report.samples = encoded.samples;
    report.sample_rate_hz = plan.encoder.sample_rate_hz;
    report.duration_s = static_cast<double>(encoded.samples) / report.sample_rate_hz;
    report.seams = encoded.seams;
    report.absorbed_segments = encoded.absorbed_segments;
    report.bumped_frames = encoded.bumped_frames;
    report.repairs = encoded.repairs;
    report.inexact_frames = encoded.inexact_frames;
    report.identical =
        encoded.inexact_frames == 0 && encoded.unusable_samples == 0 && reader.matches_ffmpeg();
    report.channels = plan.encoder.channels;
    report.frames = writer.frames();
    report.bytes = writer.bytes();
    report.audio_bytes = writer.audio_bytes();
    report.mode = to_string(plan.encoder.rate_control);
    report.container = input.format().iformat->name;
    report.codec = reader.codec_name();
    report.audio_stream = reader.stream_index();
    report.encoder = mp3::lame_version();
    report.damaged_packets = reader.damaged_packets();
    report.warnings = plan.warnings;
    report.warnings.insert(report.warnings.end(), reader.warnings().begin(),
                           reader.warnings().end());
    if (encoded.unusable_samples > 0) {
        report.warnings.push_back(
            {.code = "unusable_samples",
             .message =
                 "NaN samples were set to 0, and infinite or far too loud samples were limited",
             .count = encoded.unusable_samples});
    }
    if (plan.xing_frame && !writer.has_xing_frame()) {
        report.warnings.push_back(
            {.code = "no_info_frame",
             .message =
                 "the output is not seekable and exceeds 8 MiB, so it has no Xing/Info frame, and "
                 "players will estimate its duration. Write to a file to get one"});
    }
    return report;
}

/// Null without `verify`.
Result<std::unique_ptr<mp3::FrameCheck>> start_check(const ConvertOptions& options,
                                                     const mp3::EncoderSettings& encoder,
                                                     const ByteSource& source,
                                                     const CancelToken& token) {
    switch (options.verify) {
        case Verify::none:
            break;
        case Verify::sequential: {
            Result<std::unique_ptr<mp3::Encoder>> alone = mp3::create_lame_encoder(encoder);
            if (!alone) return alone.error();
            return std::unique_ptr<mp3::FrameCheck>(
                std::make_unique<mp3::SequentialCheck>(std::move(*alone)));
        }
        case Verify::ffmpeg:
            if (!source.path().empty()) {
                return mp3::FfmpegCheck::start(options, source.path(), token);
            }
            return Error{.code = ErrorCode::invalid_argument,
                         .message =
                             "verify: 'ffmpeg' requires an input file. Use the path of the "
                             "input as source, or verify with 'sequential'"};
    }
    return std::unique_ptr<mp3::FrameCheck>();
}

Result<ConvertReport> convert(ByteSource& source, ByteSink& sink, const ConvertOptions& options,
                              const ProgressCallback& on_progress, const CancelToken& token,
                              Clock::time_point start) {
    Result<OpenedInput> input = OpenedInput::open(source, options.limits, token);
    if (!input) return input.error();
    const ReaderOptions reader_options{.audio_stream = options.audio_stream,
                                       .start_s = options.start_s,
                                       .end_s = options.end_s,
                                       .sample_rate_hz = options.sample_rate_hz,
                                       .channels = options.channels,
                                       .strict = options.strict};
    Result<std::unique_ptr<AudioReader>> reader = AudioReader::open(*input, reader_options);
    if (!reader) return reader.error();
    ConversionPlan plan = plan_conversion(*input, **reader, options, sink.can_patch());
    Result<std::unique_ptr<mp3::Encoder>> encoder = mp3::create_lame_encoder(plan.encoder);
    if (!encoder) return encoder.error();
    plan.xing.encoder_delay = (*encoder)->delay_samples();
    plan.xing.lowpass_hz = (*encoder)->lowpass_hz();
    plan.xing.tag_flags = (*encoder)->tag_flags();
    plan.xing.noise_shaping = (*encoder)->noise_shaping();
    mp3::Mp3Writer writer(sink, std::move(plan.tag), plan.xing, {.xing_frame = plan.xing_frame});
    if (Result<void> begun = writer.begin(); !begun) return begun.error();
    Result<std::unique_ptr<mp3::FrameCheck>> check =
        start_check(options, plan.encoder, source, token);
    if (!check) return check.error();
    const Stream stream{.reader = **reader, .writer = writer, .check = check->get()};
    ProgressTeller progress(on_progress, **reader, writer, start);
    Result<mp3::ParallelSummary> encoded =
        plan.segments.parallel
            ? encode_side_by_side(stream, std::move(*encoder), progress, plan, token)
            : encode_all(stream, **encoder, progress, token);
    if (!encoded) return encoded.error();
    if (*check) {
        if (Result<void> equal = (*check)->finish(); !equal) return equal.error();
    }
    if (Result<void> finished = writer.finish(encoded->samples); !finished) {
        return finished.error();
    }
    if (!progress.tell(encoded->samples, true)) return stopped_by_callback();
    if (Result<void> committed = sink.commit(); !committed) return committed.error();
    ConvertReport report = make_report(*input, **reader, writer, plan, *encoded);
    if (*check) {
        report.reference = (*check)->reference();
        report.identical = options.verify == Verify::ffmpeg ||
                           (encoded->unusable_samples == 0 && (*reader)->matches_ffmpeg());
    }
    return report;
}

}  // namespace

Result<ConvertReport> convert_to_mp3(ByteSource& source, ByteSink& sink,
                                     const ConvertOptions& options,
                                     const ProgressCallback& on_progress,
                                     const CancelToken& token) try {
    const Clock::time_point start = Clock::now();
    if (Result<void> checked = validate(options); !checked) return checked.error();
    const LogCapture capture;
    Result<ConvertReport> report = convert(source, sink, options, on_progress, token, start);
    if (report) {
        report->elapsed_s = seconds_since(start);
    } else if (report.error().input_name.empty()) {
        report.error().input_name = source.name();
    }
    return report;
} catch (const std::bad_alloc&) {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory to convert the input",
                 .input_name = source.name()};
}

}  // namespace polymux::media
