#include "spectrogram/mel_inverse.hpp"

#include <algorithm>
#include <cmath>

namespace polymux::spectrogram {

namespace {

/// Changes a band by less than a thousandth, a tenth of the error of an image's 256 grays.
constexpr double ridge = 1e-5;
/// Relative to the loudest band.
constexpr double tolerance = 1e-9;
constexpr int max_steps = 100;
constexpr int max_halvings = 40;

}  // namespace

MelInverse::MelInverse(const MelScale& scale)
    : scale_(&scale),
      dual_(scale.bands()),
      tried_(scale.bands()),
      gradient_(scale.bands()),
      step_(scale.bands()),
      diagonal_(scale.bands()),
      beside_(scale.bands()),
      wanted_(scale.bands()),
      found_(scale.bins()) {}

/// Sets `found_`, `gradient_`, and the matrix of the next step.
MelInverse::Slope MelInverse::evaluate(std::span<const double> dual, std::span<const double> mel) {
    const std::size_t bands = scale_->bands();
    Slope slope;
    for (std::size_t band = 0; band < bands; ++band) {
        gradient_[band] = ridge * dual[band] - mel[band];
        diagonal_[band] = ridge;
        beside_[band] = 0;
        slope.objective += dual[band] * (0.5 * ridge * dual[band] - mel[band]);
    }
    for (std::size_t piece = 0; piece <= bands; ++piece) {
        const double below = piece > 0 ? dual[piece - 1] : 0.0;
        const double above = piece < bands ? dual[piece] : 0.0;
        double sums[5] = {};
        const MelScale::Piece& of = scale_->pieces()[piece];
        for (std::size_t bin = of.first_bin; bin < of.end_bin; ++bin) {
            const double falling = scale_->falling()[bin];
            const double rising = scale_->rising()[bin];
            const double magnitude = std::max(0.0, falling * below + rising * above);
            found_[bin] = magnitude;
            slope.objective += 0.5 * magnitude * magnitude;
            if (magnitude > 0) {
                sums[0] += falling * magnitude;
                sums[1] += rising * magnitude;
                sums[2] += falling * falling;
                sums[3] += rising * rising;
                sums[4] += falling * rising;
            }
        }
        if (piece > 0) {
            gradient_[piece - 1] += sums[0];
            diagonal_[piece - 1] += sums[2];
        }
        if (piece < bands) {
            gradient_[piece] += sums[1];
            diagonal_[piece] += sums[3];
        }
        if (piece > 0 && piece < bands) beside_[piece - 1] = sums[4];
    }
    for (const double value : gradient_) slope.steepest = std::max(slope.steepest, std::abs(value));
    return slope;
}

/// Solves the tridiagonal system for `step_`. It is positive definite, so no pivots are needed.
void MelInverse::newton_step() {
    const std::size_t bands = scale_->bands();
    for (std::size_t band = 0; band < bands; ++band) {
        step_[band] = gradient_[band];
        if (band > 0) {
            const double factor = beside_[band - 1] / diagonal_[band - 1];
            diagonal_[band] -= factor * beside_[band - 1];
            step_[band] -= factor * step_[band - 1];
        }
    }
    for (std::size_t band = bands; band-- > 0;) {
        if (band + 1 < bands) step_[band] -= beside_[band] * step_[band + 1];
        step_[band] /= diagonal_[band];
    }
}

/// Moves along `step_` until the objective falls enough (Armijo), and leaves `dual_` there.
MelInverse::Slope MelInverse::search(std::span<const double> mel, const Slope& from) {
    double descent = 0;
    for (std::size_t band = 0; band < dual_.size(); ++band) {
        descent += gradient_[band] * step_[band];
    }
    Slope reached = from;
    double length = 1;
    for (int halving = 0; halving < max_halvings; ++halving, length /= 2) {
        for (std::size_t band = 0; band < dual_.size(); ++band) {
            tried_[band] = dual_[band] - length * step_[band];
        }
        reached = evaluate(tried_, mel);
        const double allowed = from.objective - 1e-4 * length * descent;
        if (reached.objective <= allowed || reached.steepest < tolerance) break;
    }
    dual_.swap(tried_);
    return reached;
}

int MelInverse::solve(std::span<const double> mel, std::span<double> magnitudes) {
    const double loudest = *std::max_element(mel.begin(), mel.end());
    if (loudest <= 0) {
        std::fill(magnitudes.begin(), magnitudes.end(), 0.0);
        return 0;
    }
    for (std::size_t band = 0; band < mel.size(); ++band) wanted_[band] = mel[band] / loudest;
    dual_ = wanted_;
    Slope slope = evaluate(dual_, wanted_);
    int steps = 0;
    for (; steps < max_steps && slope.steepest > tolerance; ++steps) {
        newton_step();
        slope = search(wanted_, slope);
    }
    for (std::size_t bin = 0; bin < found_.size(); ++bin) magnitudes[bin] = found_[bin] * loudest;
    return steps;
}

}  // namespace polymux::spectrogram
