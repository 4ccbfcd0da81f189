// Fourier transforms of zero-padded frames.
#pragma once

#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>
#include <vector>

#include "spectrogram/frame_transform.hpp"

namespace polymux::spectrogram {

/// If a frame is zero after a `parts`-th of the length, every `parts`-th bin of its transform is a
/// bin of a transform of that short length. The bins between come from the frame rotated by 1, 2,
/// ... bins. This skips the zeros, and the working set fits a core's cache. J. Markel, "FFT
/// pruning", IEEE Trans. Audio Electroacoustics 19, 1971.
class PaddedTransform {
public:
    /// A transform of `length` values, which are zero from `values` on.
    PaddedTransform(std::size_t values, std::size_t length)
        : parts_(parts_for(values, length)), short_(length / parts_), turns_(parts_) {
        for (std::size_t part = 1; part < parts_; ++part) {
            for (std::size_t at = 0; at < short_.length(); ++at) {
                const double angle = -2 * std::numbers::pi *
                                     static_cast<double>(part * at % length) /
                                     static_cast<double>(length);
                turns_[part].push_back(
                    {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))});
            }
        }
    }

    /// Length of the whole transform.
    [[nodiscard]] std::size_t length() const noexcept { return parts_ * short_.length(); }
    /// Length of a frame: values, followed by zeros.
    [[nodiscard]] std::size_t short_length() const noexcept { return short_.length(); }

    /// Computes the spectra of `frame`, which has `short_length` values; `bins` has `length`.
    void forward(std::span<const Bin> frame, std::span<Bin> bins) const {
        for (std::size_t part = 0; part < parts_; ++part) {
            Bin* to = bins.data() + part * short_.length();
            for (std::size_t at = 0; at < short_.length(); ++at) {
                to[at] = part == 0 ? frame[at] : turned(frame[at], turns_[part][at]);
            }
            short_.forward(to);
        }
    }

    /// Position of a bin of the whole transform.
    [[nodiscard]] std::size_t place(std::size_t bin) const noexcept {
        return bin % parts_ * short_.length() + bin / parts_;
    }

private:
    struct Turn {
        float real;
        float imaginary;
    };

    static std::size_t parts_for(std::size_t values, std::size_t length) noexcept {
        for (const std::size_t parts : {4U, 3U, 2U}) {
            if (length % parts == 0 && values <= length / parts) return parts;
        }
        return 1;
    }

    static Bin turned(const Bin& bin, const Turn& by) noexcept {
        return {bin.r * by.real - bin.i * by.imaginary, bin.r * by.imaginary + bin.i * by.real};
    }

    std::size_t parts_;
    FrameTransform short_;
    std::vector<std::vector<Turn>> turns_;
};

}  // namespace polymux::spectrogram
