#include <new>

#include "polymux/media/pcm.hpp"
#include "polymux/song/shazam_signature.hpp"

namespace polymux::song {

Result<ShazamSignature> shazam_signature_of(media::ByteSource& source, const media::Limits& limits,
                                            const CancelToken& token) try {
    MiddleSegment segment;
    const auto take = [&segment](std::span<const float> samples) {
        segment.append(samples);
        return true;
    };
    const media::PcmOptions options{
        .sample_rate_hz = shazam_rate_hz, .channels = 1, .limits = limits};
    const Result<media::PcmReport> report = media::decode_pcm(source, take, options, token);
    if (!report) return report.error();
    return shazam_signature(segment.samples());
} catch (const std::bad_alloc&) {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory for the signature of the recording",
                 .input_name = source.name()};
}

}  // namespace polymux::song
