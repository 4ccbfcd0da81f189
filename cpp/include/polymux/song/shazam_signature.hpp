// The signature by which Shazam's servers recognize a song: the strongest points of its spectrum.
//
//     Result<ShazamSignature> signature = shazam_signature_of(source, {}, {});
//     if (!signature) return signature.error();
//     send(shazam_uri(signature->bytes));
//
// The format is unpublished. This implementation was derived by comparing its bytes with those of
// the Python package shazamio-core for equal samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "polymux/cancel.hpp"
#include "polymux/media/limits.hpp"
#include "polymux/media/source.hpp"
#include "polymux/result.hpp"

namespace polymux::song {

inline constexpr int shazam_rate_hz = 16'000;

/// Ten seconds, the length that the reference uses for a signature.
inline constexpr std::size_t shazam_segment_samples = std::size_t{10} * shazam_rate_hz;

struct ShazamSignature {
    std::vector<std::byte> bytes;
    std::int64_t samples = 0;  ///< Length of the input, at 16 kHz.
    std::size_t peaks = 0;     ///< 0 for silence, which cannot be recognized.
};

/// Makes the signature of one channel at 16 kHz. Can fail only for lack of memory.
[[nodiscard]] Result<ShazamSignature> shazam_signature(std::span<const std::int16_t> samples);

/// Decodes a recording, mixes it to one channel, and makes the signature of its middle ten seconds.
/// Errors: as in `media::decode_pcm`.
[[nodiscard]] Result<ShazamSignature> shazam_signature_of(media::ByteSource& source,
                                                          const media::Limits& limits,
                                                          const CancelToken& token);

/// Encodes a signature as requests send it: base64 in a `data:` URI.
[[nodiscard]] std::string shazam_uri(std::span<const std::byte> signature);

/// Keeps the middle of a recording whose length is unknown until its end. Uses one byte of memory
/// per sample.
class MiddleSegment {
public:
    /// Keeps `max_samples` in the end; a shorter recording completely.
    explicit MiddleSegment(std::size_t max_samples = shazam_segment_samples)
        : max_samples_(max_samples) {}

    /// Appends samples in [-1, 1]. Louder samples are clipped; NaN becomes silence. May throw
    /// `std::bad_alloc`.
    void append(std::span<const float> samples);

    /// Number of appended samples.
    [[nodiscard]] std::size_t given() const noexcept { return dropped_ + kept_.size(); }

    /// The middle of the samples appended so far. Valid until the next call of `append`.
    [[nodiscard]] std::span<const std::int16_t> samples() const noexcept;

private:
    [[nodiscard]] std::size_t first() const noexcept;

    std::size_t max_samples_;
    std::size_t dropped_ = 0;
    std::vector<std::int16_t> kept_;
};

}  // namespace polymux::song
