// Triangular bands on the mel scale, and the conversion of magnitudes to them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "polymux/spectrogram/parameters.hpp"
#include "spectrogram/frame_transform.hpp"

namespace polymux::spectrogram {

/// A bin of the transform belongs to two neighboring triangles at most: the falling side of one,
/// and the rising side of the next. Covers only bins between the lowest and the highest frequency;
/// others belong to no band.
class MelScale {
public:
    explicit MelScale(const Parameters& parameters);

    /// Bins on one straight piece: between the centers of bands `piece - 1` and `piece`.
    struct Piece {
        std::size_t first_bin = 0;
        std::size_t end_bin = 0;
    };

    [[nodiscard]] std::size_t bands() const noexcept { return pieces_.size() - 1; }
    /// One more than the highest bin that belongs to a band.
    [[nodiscard]] std::size_t bins() const noexcept { return falling_.size(); }
    [[nodiscard]] std::span<const Piece> pieces() const noexcept { return pieces_; }
    /// A bin's weight in the band below its piece; 0 on the first piece.
    [[nodiscard]] std::span<const double> falling() const noexcept { return falling_; }
    /// A bin's weight in the band above its piece; 0 on the last piece.
    [[nodiscard]] std::span<const double> rising() const noexcept { return rising_; }

    /// Computes `mel[band]` from `magnitudes[bin]`, for eight frames at a time.
    void apply(std::span<const Pair> magnitudes, std::span<Pair> mel) const noexcept;

private:
    std::vector<Piece> pieces_;
    std::vector<double> falling_;
    std::vector<double> rising_;
};

}  // namespace polymux::spectrogram
