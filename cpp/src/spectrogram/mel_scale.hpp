// Triangles on the mel scale, and the way from magnitudes to them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "polymux/spectrogram/parameters.hpp"
#include "spectrogram/frame_transform.hpp"

namespace polymux::spectrogram {

/// A bin of the transform lies under two neighbouring triangles at most: it is on the falling side
/// of one, and on the rising side of the next. Only bins between the lowest and the highest
/// frequency are known here; others belong to no band.
class MelScale {
public:
    explicit MelScale(const Parameters& parameters);

    /// Bins on one straight piece: between the middles of bands `piece - 1` and `piece`.
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

    /// `mel[band]` from `magnitudes[bin]`, of eight frames at a time.
    void apply(std::span<const Pair> magnitudes, std::span<Pair> mel) const noexcept;

private:
    std::vector<Piece> pieces_;
    std::vector<double> falling_;
    std::vector<double> rising_;
};

}  // namespace polymux::spectrogram
