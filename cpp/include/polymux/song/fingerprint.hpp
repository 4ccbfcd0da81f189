// Fingerprints of songs: the stored peaks of their spectrograms.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "polymux/song/parameters.hpp"
#include "polymux/song/peaks.hpp"

namespace polymux::song {

/// A song, or up to 4.6 hours of a longer recording.
struct FingerprintPart {
    std::uint32_t first_frame = 0;
    Fingerprint fingerprint;
};

/// Fingerprints a song's audio piece by piece. Memory grows only with the number of peaks.
///
///     Fingerprinter fingerprinter(parameters);
///     while (...) fingerprinter.feed(mono_samples_at_8_khz);
///     std::vector<FingerprintPart> parts = fingerprinter.finish();
///
/// Peaks of a spectrogram: A. Wang, "An Industrial-Strength Audio Search Algorithm", ISMIR 2003.
class Fingerprinter {
public:
    explicit Fingerprinter(const Parameters& parameters = {});
    ~Fingerprinter();
    Fingerprinter(const Fingerprinter&) = delete;
    Fingerprinter& operator=(const Fingerprinter&) = delete;

    /// Adds samples of one channel at `Parameters::sample_rate_hz`.
    void feed(std::span<const float> samples);

    /// Returns at least one part. Silent parts have no peaks. Call it once.
    [[nodiscard]] std::vector<FingerprintPart> finish();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace polymux::song
