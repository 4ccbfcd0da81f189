#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "spectrogram/mel_inverse.hpp"

using namespace polymux::spectrogram;

namespace {

double distance(const std::vector<double>& one, const std::vector<double>& other) {
    double squares = 0;
    double all = 0;
    for (std::size_t at = 0; at < one.size(); ++at) {
        squares += (one[at] - other[at]) * (one[at] - other[at]);
        all += other[at] * other[at];
    }
    return std::sqrt(squares / all);
}

std::vector<double> applied(const MelScale& scale, const std::vector<double>& magnitudes) {
    std::vector<Pair> frames(magnitudes.size());
    for (std::size_t bin = 0; bin < frames.size(); ++bin) {
        // Only one of the eight frames; the others are silent, and stay silent.
        frames[bin].second[2] = static_cast<float>(magnitudes[bin]);
    }
    std::vector<Pair> bands(scale.bands());
    scale.apply(frames, bands);
    std::vector<double> mel;
    for (const Pair& band : bands) {
        mel.push_back(static_cast<double>(band.second[2]));
        CHECK(band.first[2] == 0);
        CHECK(band.second[3] == 0);
    }
    return mel;
}

/// Values of a column of a noise image: random grays, converted back.
std::vector<double> random_column(std::mt19937& random, std::size_t bands) {
    std::vector<double> mel(bands);
    for (double& value : mel) value = std::pow(static_cast<double>(random() % 256) / 255.0, 4);
    return mel;
}

}  // namespace

TEST_CASE("the triangles of a bin add up to 1 between the first and the last center") {
    const MelScale scale(Parameters{});
    REQUIRE(scale.bands() == 512);
    REQUIRE(scale.bins() == 4'000);
    for (std::size_t piece = 1; piece < scale.bands(); ++piece) {
        const MelScale::Piece& of = scale.pieces()[piece];
        REQUIRE(of.first_bin < of.end_bin);
        for (std::size_t bin = of.first_bin; bin < of.end_bin; ++bin) {
            CHECK(scale.falling()[bin] + scale.rising()[bin] == doctest::Approx(1));
        }
    }
}

TEST_CASE("a band's center follows HTK's formula") {
    const MelScale scale(Parameters{});
    // Band 255, counted from 0, has its center in the middle of the mel scale: 2,077.4 Hz.
    const double middle = 2595.0 * std::log10(1.0 + 10'000.0 / 700.0) * 256 / 513;
    const double hz = 700.0 * (std::pow(10.0, middle / 2595.0) - 1.0);
    std::vector<double> magnitudes(scale.bins());
    magnitudes[static_cast<std::size_t>(std::lround(hz / 2.5))] = 1;
    const std::vector<double> mel = applied(scale, magnitudes);
    CHECK(std::max_element(mel.begin(), mel.end()) - mel.begin() == 255);
    CHECK(mel[255] > 0.9);
}

TEST_CASE("exact solutions are found") {
    const MelScale scale(Parameters{});
    MelInverse inverse(scale);
    std::mt19937 random(1);
    for (int round = 0; round < 20; ++round) {
        std::vector<double> magnitudes(scale.bins());
        for (double& value : magnitudes) {
            value = random() % 30 == 0 ? static_cast<double>(random() % 1'000) : 0.0;
        }
        const std::vector<double> mel = applied(scale, magnitudes);
        std::vector<double> found(scale.bins());
        CHECK(inverse.solve(mel, found) < 30);
        CHECK(*std::min_element(found.begin(), found.end()) >= 0);
        CHECK(distance(applied(scale, found), mel) < 1e-3);
    }
}

TEST_CASE("otherwise the closest solution is found: no bin could improve it") {
    const MelScale scale(Parameters{});
    MelInverse inverse(scale);
    std::mt19937 random(2);
    for (int round = 0; round < 20; ++round) {
        const std::vector<double> mel = random_column(random, scale.bands());
        std::vector<double> found(scale.bins());
        CHECK(inverse.solve(mel, found) < 60);
        const std::vector<double> back = applied(scale, found);
        REQUIRE(distance(back, mel) > 0.01);
        // The Karush-Kuhn-Tucker conditions: the gradient is 0 at nonzero bins, and does not
        // decrease at zero bins.
        for (std::size_t piece = 0; piece <= scale.bands(); ++piece) {
            const double below = piece > 0 ? back[piece - 1] - mel[piece - 1] : 0.0;
            const double above = piece < scale.bands() ? back[piece] - mel[piece] : 0.0;
            const MelScale::Piece& of = scale.pieces()[piece];
            for (std::size_t bin = of.first_bin; bin < of.end_bin; ++bin) {
                const double slope = scale.falling()[bin] * below + scale.rising()[bin] * above;
                CHECK(slope > -1e-4);
                if (found[bin] > 1e-6) CHECK(slope < 1e-4);
            }
        }
    }
}

TEST_CASE("silence stays silent, and one quiet band does not") {
    const MelScale scale(Parameters{});
    MelInverse inverse(scale);
    std::vector<double> mel(scale.bands());
    std::vector<double> found(scale.bins(), 1.0);
    CHECK(inverse.solve(mel, found) == 0);
    CHECK(*std::max_element(found.begin(), found.end()) == 0);
    mel[100] = 1e-12;
    inverse.solve(mel, found);
    CHECK(*std::max_element(found.begin(), found.end()) > 1e-13);
}

TEST_CASE("bands without bins do no harm") {
    Parameters parameters;
    parameters.transform_samples = 512;
    parameters.window_samples = 512;
    parameters.hop_samples = 128;
    const MelScale scale(parameters);
    MelInverse inverse(scale);
    std::mt19937 random(3);
    std::vector<double> found(scale.bins());
    inverse.solve(random_column(random, scale.bands()), found);
    CHECK(std::all_of(found.begin(), found.end(),
                      [](double value) { return std::isfinite(value) && value >= 0; }));
}
