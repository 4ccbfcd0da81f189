// Fourier transforms of eight frames of real audio at a time.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#define POCKETFFT_NO_MULTITHREADING
#include <pocketfft_hdronly.h>

namespace polymux::spectrogram {

inline constexpr std::size_t lane_count = 4;
inline constexpr std::size_t batch_frames = 2 * lane_count;

/// Four numbers that the processor handles at once: 16 bytes on every machine, which makes results
/// independent of wider instructions.
typedef float Lanes __attribute__((vector_size(16)));  // NOLINT(modernize-use-using)

/// Four frames are the real parts, four others the imaginary parts of one complex transform.
using Bin = pocketfft::detail::cmplx<Lanes>;

/// One value of each of the eight frames.
struct Pair {
    Lanes first;
    Lanes second;
};

/// Spectra of the eight frames at one bin.
struct Spectra {
    Bin first;
    Bin second;
};

/// The spectra in a transform at `bin`, given that bin and its mirror image.
[[nodiscard]] inline Spectra unpacked(const Bin& bin, const Bin& mirrored) noexcept {
    constexpr float half = 0.5F;
    return {{(bin.r + mirrored.r) * half, (bin.i - mirrored.i) * half},
            {(bin.i + mirrored.i) * half, (mirrored.r - bin.r) * half}};
}

/// The inverse of `unpacked`.
inline void pack(const Spectra& spectra, Bin& bin, Bin& mirrored) noexcept {
    bin = {spectra.first.r - spectra.second.i, spectra.first.i + spectra.second.r};
    mirrored = {spectra.first.r + spectra.second.i, spectra.second.r - spectra.first.i};
}

/// Thread-safe. The caller owns the buffers, which have `length` bins.
class FrameTransform {
public:
    explicit FrameTransform(std::size_t length) : length_(length), plan_(length) {}

    [[nodiscard]] std::size_t length() const noexcept { return length_; }

    void forward(Bin* bins) const { plan_.exec(bins, 1.0F, true); }
    void backward(Bin* bins) const { plan_.exec(bins, 1.0F / static_cast<float>(length_), false); }

private:
    std::size_t length_;
    pocketfft::detail::pocketfft_c<float> plan_;
};

}  // namespace polymux::spectrogram
