// The signature by which Shazam's servers recognise a song: the strongest points of its spectrum.
//
//     Result<ShazamSignature> signature = shazam_signature_of(source, {}, {});
//     if (!signature) return signature.error();
//     send(shazam_uri(signature->bytes));
//
// Nobody has published how it is made. What is computed here was found out by comparing bytes with
// those of the Python package shazamio-core, for equal samples.
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

/// Ten seconds, of which the reference makes a signature.
inline constexpr std::size_t shazam_segment_samples = std::size_t{10} * shazam_rate_hz;

struct ShazamSignature {
    std::vector<std::byte> bytes;
    std::int64_t samples = 0;  ///< That it was made of, at 16 kHz.
    std::size_t peaks = 0;     ///< None in silence: nobody can recognise that.
};

/// The signature of one channel at 16 kHz. Nothing but memory can fail.
[[nodiscard]] Result<ShazamSignature> shazam_signature(std::span<const std::int16_t> samples);

/// Decodes a recording, mixed to one channel, and makes the signature of its middle ten seconds.
/// Errors: as of `media::decode_pcm`.
[[nodiscard]] Result<ShazamSignature> shazam_signature_of(media::ByteSource& source,
                                                          const media::Limits& limits,
                                                          const CancelToken& token);

/// A signature as requests carry it: base64 in a `data:` address.
[[nodiscard]] std::string shazam_uri(std::span<const std::byte> signature);

/// Keeps the middle of a recording whose length nobody knows before its end, in memory of one byte
/// for each sample of it.
class MiddleSegment {
public:
    /// Keeps `max_samples` at the end; of a shorter recording all.
    explicit MiddleSegment(std::size_t max_samples = shazam_segment_samples)
        : max_samples_(max_samples) {}

    /// Takes samples in [-1, 1]; what is louder is clipped, what is no number is silence.
    /// May throw `std::bad_alloc`.
    void append(std::span<const float> samples);

    /// How many it was given.
    [[nodiscard]] std::size_t given() const noexcept { return dropped_ + kept_.size(); }

    /// The middle of what it was given so far. Valid until the next call of `append`.
    [[nodiscard]] std::span<const std::int16_t> samples() const noexcept;

private:
    [[nodiscard]] std::size_t first() const noexcept;

    std::size_t max_samples_;
    std::size_t dropped_ = 0;
    std::vector<std::int16_t> kept_;
};

}  // namespace polymux::song
