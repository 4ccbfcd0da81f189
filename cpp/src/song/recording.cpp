#include "polymux/song/recording.hpp"

#include <new>
#include <span>
#include <utility>

#include "polymux/media/pcm.hpp"
#include "song/mono.hpp"

namespace polymux::song {

namespace {

media::PcmOptions decoding(const Parameters& parameters, const RecordingOptions& options) {
    return {.sample_rate_hz = parameters.sample_rate_hz,
            .channels = 2,
            .audio_stream = options.audio_stream,
            .limits = options.limits};
}

/// One pass over the recording, with one channel choice.
struct Reading {
    std::vector<FingerprintPart> parts;
    MonoChoice wanted = MonoChoice::middle;
    double duration_s = 0;
};

Result<Reading> read_with(MonoChoice choice, media::ByteSource& source,
                          const Parameters& parameters, const RecordingOptions& options,
                          const std::function<void(double)>& on_progress,
                          const CancelToken& token) {
    Fingerprinter fingerprinter(parameters);
    ChannelPowers powers(parameters);
    std::vector<float> mono;
    std::size_t taken = 0;
    const auto rate = static_cast<double>(parameters.sample_rate_hz);
    const auto take = [&](std::span<const float> samples) {
        powers.take(samples);
        mono.clear();
        append_mono(samples, choice, parameters, mono);
        fingerprinter.feed(mono);
        taken += mono.size();
        if (on_progress) {
            on_progress(static_cast<double>(taken) / rate);
        }
        return true;
    };
    const Result<media::PcmReport> report =
        media::decode_pcm(source, take, decoding(parameters, options), token);
    if (!report) {
        return report.error();
    }
    return Reading{.parts = fingerprinter.finish(),
                   .wanted = powers.choice(),
                   .duration_s = static_cast<double>(taken) / rate};
}

}  // namespace

Result<RecordingFingerprint> fingerprint_recording(media::ByteSource& source,
                                                   const Parameters& parameters,
                                                   const RecordingOptions& options,
                                                   const std::function<void(double)>& on_progress,
                                                   const CancelToken& token) try {
    Result<Reading> reading =
        read_with(MonoChoice::middle, source, parameters, options, on_progress, token);
    if (!reading) {
        return reading.error();
    }
    // Known only at the end, and rare; then the recording is read again.
    if (reading->wanted != MonoChoice::middle && source.seekable()) {
        if (Result<void> begun = source.seek(0); !begun) {
            return begun.error();
        }
        reading = read_with(reading->wanted, source, parameters, options, on_progress, token);
        if (!reading) {
            return reading.error();
        }
    }
    return RecordingFingerprint{.parts = std::move(reading->parts),
                                .duration_s = reading->duration_s};
} catch (const std::bad_alloc&) {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory for the fingerprint of the recording",
                 .input_name = source.name()};
}

Result<RecordedQuery> query_recording(media::ByteSource& source, const Parameters& parameters,
                                      const RecordingOptions& options,
                                      const CancelToken& token) try {
    std::vector<float> stereo;
    media::PcmOptions decode = decoding(parameters, options);
    decode.end_s = parameters.max_decoded_s;
    const auto take = [&stereo](std::span<const float> samples) {
        stereo.insert(stereo.end(), samples.begin(), samples.end());
        return true;
    };
    const Result<media::PcmReport> report = media::decode_pcm(source, take, decode, token);
    if (!report) {
        return report.error();
    }
    ChannelPowers powers(parameters);
    powers.take(stereo);
    std::vector<float> mono;
    append_mono(stereo, powers.choice(), parameters, mono);
    return RecordedQuery{
        .query = make_query(loudest_part(mono, parameters), parameters),
        .duration_s = static_cast<double>(mono.size()) / parameters.sample_rate_hz};
} catch (const std::bad_alloc&) {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory for the query of the recording",
                 .input_name = source.name()};
}

}  // namespace polymux::song
