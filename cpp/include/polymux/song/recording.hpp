// From a file of sound to its fingerprint, or to a question about it.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "polymux/cancel.hpp"
#include "polymux/media/limits.hpp"
#include "polymux/media/source.hpp"
#include "polymux/result.hpp"
#include "polymux/song/fingerprint.hpp"
#include "polymux/song/parameters.hpp"
#include "polymux/song/query.hpp"

namespace polymux::song {

struct RecordingOptions {
    std::optional<int> audio_stream = {};  ///< Default: the one that a conversion would take.
    media::Limits limits = {};
};

struct RecordingFingerprint {
    std::vector<FingerprintPart> parts;
    double duration_s = 0;
};

/// Decodes a recording and takes its fingerprint. Where the middle of two channels is silence, the
/// louder channel is taken. `on_progress` gets the position in seconds. Errors: as of
/// `media::decode_pcm`.
Result<RecordingFingerprint> fingerprint_recording(media::ByteSource& source,
                                                   const Parameters& parameters,
                                                   const RecordingOptions& options,
                                                   const std::function<void(double)>& on_progress,
                                                   const CancelToken& token);

struct RecordedQuery {
    Query query;
    double duration_s = 0;  ///< Of what was decoded.
};

/// Decodes a snippet, or the beginning of a long one, and finds the peaks of its loudest part.
/// Errors: as of `media::decode_pcm`.
Result<RecordedQuery> query_recording(media::ByteSource& source, const Parameters& parameters,
                                      const RecordingOptions& options, const CancelToken& token);

}  // namespace polymux::song
