// Inverts mel bands to magnitudes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "spectrogram/mel_scale.hpp"

namespace polymux::spectrogram {

/// Finds the magnitudes s >= 0 whose mel bands M s are closest to the requested m by least squares
/// and, among those, the ones of the smallest norm. It minimizes |M s - m|^2 + ridge |s|^2, which
/// has a unique solution, with an inaudibly small ridge.
///
/// The dual has one unknown for each band: s = max(0, M' x), where M max(0, M' x) + ridge x = m.
/// Newton's method on it has a tridiagonal matrix, because a bin belongs to two bands at most. It
/// ends when the set of zero bins no longer changes: about ten steps, exact to the last digit. L.
/// Qi and J. Sun, "A nonsmooth version of Newton's method", Math. Programming 58, 1993.
class MelInverse {
public:
    /// `scale` must outlive this object.
    explicit MelInverse(const MelScale& scale);

    /// Computes `magnitudes[bin]` from the non-negative `mel[band]`. Returns the number of steps.
    int solve(std::span<const double> mel, std::span<double> magnitudes);

private:
    struct Slope {
        double objective = 0;
        double steepest = 0;
    };

    Slope evaluate(std::span<const double> dual, std::span<const double> mel);
    void newton_step();
    Slope search(std::span<const double> mel, const Slope& from);

    const MelScale* scale_;
    std::vector<double> dual_;
    std::vector<double> tried_;
    std::vector<double> gradient_;
    std::vector<double> step_;
    std::vector<double> diagonal_;
    std::vector<double> beside_;
    std::vector<double> wanted_;
    std::vector<double> found_;
};

}  // namespace polymux::spectrogram
