#include "polymux/media/pcm.hpp"

#include <new>
#include <vector>

#include "media/opened_input.hpp"
#include "media/range.hpp"
#include "media/reader.hpp"

namespace polymux::media {

namespace {

constexpr int block_samples = 4096;
constexpr int highest_rate_hz = 384'000;

Result<void> check(const PcmOptions& options) {
    if (options.sample_rate_hz < 1 || options.sample_rate_hz > highest_rate_hz) {
        return Error{.code = ErrorCode::invalid_argument,
                     .message = "sample_rate: out of range (got " +
                                std::to_string(options.sample_rate_hz) + " Hz, allowed 1 to " +
                                std::to_string(highest_rate_hz) + ")"};
    }
    if (options.channels != 1 && options.channels != 2) {
        return Error{.code = ErrorCode::invalid_argument,
                     .message = "channels: invalid value (got " + std::to_string(options.channels) +
                                ", allowed 1 or 2)"};
    }
    if (auto problem = range_problem(options.start_s, options.end_s)) {
        return Error{.code = ErrorCode::invalid_argument, .message = *problem};
    }
    return {};
}

std::span<const float> interleave(const mp3::PcmBlock& block, int channels,
                                  std::vector<float>& storage) {
    const auto samples = static_cast<std::size_t>(block.samples);
    const auto* left = static_cast<const float*>(block.planes[0]);
    if (channels == 1) return {left, samples};
    const auto* right = static_cast<const float*>(block.planes[1]);
    storage.resize(2 * samples);
    for (std::size_t index = 0; index < samples; ++index) {
        storage[2 * index] = left[index];
        storage[2 * index + 1] = right[index];
    }
    return storage;
}

Result<PcmReport> decode(AudioReader& reader, const std::string& name, const PcmSink& sink) {
    PcmReport report{.samples = 0,
                     .sample_rate_hz = reader.format().sample_rate_hz,
                     .channels = reader.format().channels,
                     .damaged_packets = 0};
    std::vector<float> storage;
    for (;;) {
        Result<mp3::PcmBlock> block = reader.read(block_samples);
        if (!block) return block.error();
        if (block->samples == 0) break;
        report.samples += block->samples;
        if (!sink(interleave(*block, report.channels, storage))) {
            return Error{.code = ErrorCode::callback_failed,
                         .message = "the sample callback stopped the decoding",
                         .input_name = name};
        }
    }
    report.damaged_packets = reader.damaged_packets();
    return report;
}

}  // namespace

Result<PcmReport> decode_pcm(ByteSource& source, const PcmSink& sink, const PcmOptions& options,
                             const CancelToken& token) try {
    if (Result<void> checked = check(options); !checked) return checked.error();
    const LogCapture capture;
    Result<OpenedInput> input = OpenedInput::open(source, options.limits, token);
    if (!input) return input.error();
    const ReaderOptions reader_options{.audio_stream = options.audio_stream,
                                       .start_s = options.start_s,
                                       .end_s = options.end_s,
                                       .sample_rate_hz = options.sample_rate_hz,
                                       .channels = options.channels,
                                       .sample_format = mp3::SampleFormat::f32,
                                       .strict = options.strict};
    Result<std::unique_ptr<AudioReader>> reader = AudioReader::open(*input, reader_options);
    if (!reader) return reader.error();
    return decode(**reader, source.name(), sink);
} catch (const std::bad_alloc&) {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory to decode the input",
                 .input_name = source.name()};
}

}  // namespace polymux::media
