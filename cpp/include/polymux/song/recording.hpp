// Makes a fingerprint or a query from an audio file.
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
    std::optional<int> audio_stream = {};  ///< Default: the same as in a conversion.
    media::Limits limits = {};
};

struct RecordingFingerprint {
    std::vector<FingerprintPart> parts;
    double duration_s = 0;
};

/// Decodes a recording and fingerprints it. If the middle of two channels is silent, uses the
/// louder channel. `on_progress` receives the position in seconds. Errors: as in
/// `media::decode_pcm`.
Result<RecordingFingerprint> fingerprint_recording(media::ByteSource& source,
                                                   const Parameters& parameters,
                                                   const RecordingOptions& options,
                                                   const std::function<void(double)>& on_progress,
                                                   const CancelToken& token);

struct RecordedQuery {
    Query query;
    double duration_s = 0;  ///< Duration of the decoded part.
};

/// Decodes a snippet, or the beginning of a long one, and finds the peaks of its loudest part.
/// Errors: as in `media::decode_pcm`.
Result<RecordedQuery> query_recording(media::ByteSource& source, const Parameters& parameters,
                                      const RecordingOptions& options, const CancelToken& token);

}  // namespace polymux::song
