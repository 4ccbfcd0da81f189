#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <thread>
#include <vector>

#include "polymux/spectrogram/picture.hpp"
#include "polymux/spectrogram/sound.hpp"
#include "spectrogram/padded_transform.hpp"

using namespace polymux;
using namespace polymux::spectrogram;

namespace {

/// Struck chords; `count` samples at 44.1 kHz.
std::vector<float> chords(std::size_t count, double root_hz = 220) {
    std::vector<float> sound(count);
    for (std::size_t at = 0; at < count; ++at) {
        const double time_s = static_cast<double>(at) / 44'100;
        const double fading = std::exp(-4 * std::fmod(time_s, 0.5));
        for (const double ratio : {1.0, 1.25, 1.5, 4.0}) {
            const double phase = 2 * std::numbers::pi * root_hz * ratio * time_s;
            sound[at] += static_cast<float>(0.15 * fading * std::sin(phase));
        }
    }
    return sound;
}

PictureView view(const Picture& picture) {
    return {.width = picture.width,
            .height = picture.height,
            .channels = picture.channels,
            .pixels = picture.pixels};
}

Parameters scaled_to(const Picture& picture, int iterations = 32) {
    Parameters parameters;
    parameters.largest = picture.largest;
    parameters.iterations = iterations;
    return parameters;
}

/// Distance of two images of the same size, in magnitudes.
double distance(const Picture& wanted, const Picture& found) {
    REQUIRE(wanted.pixels.size() == found.pixels.size());
    double squares = 0;
    double all = 0;
    for (std::size_t at = 0; at < wanted.pixels.size(); ++at) {
        const double one = std::pow((255 - wanted.pixels[at]) / 255.0, 4) * wanted.largest;
        const double other = std::pow((255 - found.pixels[at]) / 255.0, 4) * found.largest;
        squares += (one - other) * (one - other);
        all += one * one;
    }
    return std::sqrt(squares / all);
}

double root_mean_square(const std::vector<float>& samples) {
    double squares = 0;
    for (const float sample : samples) squares += static_cast<double>(sample * sample);
    return std::sqrt(squares / static_cast<double>(samples.size()));
}

std::string refusal(const Result<Sound>& result) {
    REQUIRE(!result);
    CHECK(result.error().code == ErrorCode::invalid_argument);
    return result.error().message;
}

}  // namespace

TEST_CASE("a full-scale sine is as dark as its magnitude, in its row") {
    std::vector<float> sine(44'100);
    for (std::size_t at = 0; at < sine.size(); ++at) {
        sine[at] = static_cast<float>(
            std::sin(2 * std::numbers::pi * 1'000 * static_cast<double>(at) / 44'100));
    }
    const auto picture = picture_of_sound(sine, 1);
    REQUIRE(picture);
    CHECK(picture->width == 100);
    CHECK(picture->height == 512);
    // The center of the window's lobe alone is half the window's sum, 36 million at 16 bits.
    CHECK(picture->largest > 36e6);
    CHECK(picture->largest < 200e6);
    const double mel_step = 2595.0 * std::log10(1.0 + 10'000.0 / 700.0) / 513;
    const double band = 2595.0 * std::log10(1.0 + 1'000.0 / 700.0) / mel_step - 1;
    const auto row = static_cast<std::size_t>(511 - std::lround(band));
    const auto darkest_at = [&](std::size_t column) {
        std::size_t darkest = 0;
        for (std::size_t at = 0; at < 512; ++at) {
            if (picture->pixels[at * 100 + column] < picture->pixels[darkest * 100 + column]) {
                darkest = at;
            }
        }
        return darkest;
    };
    CHECK(darkest_at(50) >= row - 1);
    CHECK(darkest_at(50) <= row + 1);
    CHECK(picture->pixels[10 * 100 + 50] > 200);
}

TEST_CASE("a played image looks the same when drawn again") {
    const auto sound = chords(150 * 441);
    const auto picture = picture_of_sound(sound, 1);
    REQUIRE(picture);
    const auto played = sound_of_picture(view(*picture), 1, scaled_to(*picture));
    REQUIRE(played);
    CHECK(played->samples.size() == sound.size());
    CHECK(root_mean_square(played->samples) ==
          doctest::Approx(root_mean_square(sound)).epsilon(0.05));
    const auto again = picture_of_sound(played->samples, 1);
    REQUIRE(again);
    CHECK(distance(*picture, *again) < 0.05);
    const auto once = sound_of_picture(view(*picture), 1, scaled_to(*picture, 1));
    REQUIRE(once);
    const auto rough = picture_of_sound(once->samples, 1);
    REQUIRE(rough);
    CHECK(distance(*picture, *rough) > 2 * distance(*picture, *again));
    // Tones start correctly: random phases are several times as far off.
    CHECK(distance(*picture, *rough) < 0.15);
}

TEST_CASE("the same seed gives the same samples, another seed different ones") {
    const auto picture = picture_of_sound(chords(90 * 441), 1);
    REQUIRE(picture);
    const Parameters parameters = scaled_to(*picture, 3);
    const auto first = sound_of_picture(view(*picture), 5, parameters);
    const auto other = sound_of_picture(view(*picture), 6, parameters);
    REQUIRE((first && other));
    CHECK(first->samples != other->samples);
    // Several at the same time, so the pool has fewer threads for each, or none.
    std::vector<std::thread> threads;
    std::atomic<int> equal{0};
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&] {
            const auto again = sound_of_picture(view(*picture), 5, parameters);
            if (again && again->samples == first->samples) ++equal;
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(equal == 4);
}

TEST_CASE("frequencies up to half the sample rate are played too") {
    Parameters parameters;
    parameters.sample_rate_hz = 16'000;
    parameters.hop_samples = 160;
    parameters.window_samples = 640;
    parameters.transform_samples = 1'024;
    parameters.mel_bands = 128;
    parameters.highest_hz = 8'000;
    const auto sound = chords(16'000, 700);
    const auto picture = picture_of_sound(sound, 1, parameters);
    REQUIRE(picture);
    parameters.largest = picture->largest;
    const auto played = sound_of_picture(view(*picture), 1, parameters);
    REQUIRE(played);
    const auto again = picture_of_sound(played->samples, 1, parameters);
    REQUIRE(again);
    CHECK(distance(*picture, *again) < 0.15);
}

TEST_CASE("stereo: channels stay separate") {
    const auto left = chords(60 * 441);
    const std::vector<float> right(left.size());
    std::vector<float> both(2 * left.size());
    for (std::size_t at = 0; at < left.size(); ++at) both[2 * at] = left[at];
    const auto picture = picture_of_sound(both, 2);
    const auto alone = picture_of_sound(left, 1);
    REQUIRE((picture && alone));
    CHECK(picture->channels == 2);
    CHECK(std::equal(alone->pixels.begin(), alone->pixels.end(), picture->pixels.begin()));
    CHECK(std::all_of(picture->pixels.begin() + 60 * 512, picture->pixels.end(),
                      [](std::uint8_t pixel) { return pixel == 255; }));
    const auto played = sound_of_picture(view(*picture), 1, scaled_to(*picture, 2));
    const auto one = sound_of_picture(view(*alone), 1, scaled_to(*alone, 2));
    REQUIRE((played && one));
    bool same = true;
    bool silent = true;
    for (std::size_t at = 0; at < left.size(); ++at) {
        same = same && played->samples[2 * at] == one->samples[at];
        silent = silent && played->samples[2 * at + 1] == 0;
    }
    CHECK(same);
    CHECK(silent);
}

TEST_CASE("silence is white, and white is silence") {
    const auto picture = picture_of_sound(std::vector<float>(5'000), 1);
    REQUIRE(picture);
    CHECK(picture->width == 12);
    CHECK(picture->largest == 0);
    CHECK(*std::min_element(picture->pixels.begin(), picture->pixels.end()) == 255);
    const auto played = sound_of_picture(view(*picture), 1);
    REQUIRE(played);
    CHECK(played->samples == std::vector<float>(12 * 441));
    const auto whole = finished(played->samples, 1, 44'100);
    REQUIRE(whole);
    CHECK(*whole == std::vector<std::int16_t>(12 * 441));
}

TEST_CASE("an image does not depend on the loudness of the audio") {
    const std::vector<float> sound = chords(22'050);
    const auto drawn = picture_of_sound(sound, 1);
    REQUIRE(drawn);
    for (const int exponent : {-120, -100, 60, 120}) {
        std::vector<float> other = sound;
        for (float& sample : other) sample = std::ldexp(sample, exponent);
        const auto found = picture_of_sound(other, 1);
        REQUIRE(found);
        CHECK(found->largest == doctest::Approx(std::ldexp(drawn->largest, exponent)));
        // Below the smallest normal number, samples themselves lose digits.
        if (exponent > -110) CHECK(found->pixels == drawn->pixels);
    }
}

TEST_CASE("high powers leave silence white") {
    Parameters parameters;
    for (const float power : {0.011F, 0.25F, 1.0F, 4.0F}) {
        parameters.power = power;
        std::vector<float> sound(44'100);
        sound[40'000] = 0.5F;
        const auto drawn = picture_of_sound(sound, 1, parameters);
        REQUIRE(drawn);
        CHECK(drawn->pixels[0] == 255);
        CHECK(*std::min_element(drawn->pixels.begin(), drawn->pixels.end()) == 0);
    }
}

TEST_CASE("the transform of a zero-padded frame is that of the whole") {
    struct Shape {
        std::size_t values;
        std::size_t length;
        std::size_t short_length;
    };
    for (const Shape& shape : {Shape{30, 120, 30}, Shape{25, 120, 30}, Shape{31, 120, 40},
                               Shape{50, 120, 60}, Shape{120, 120, 120}, Shape{4, 14, 7}}) {
        const PaddedTransform padded(shape.values, shape.length);
        CHECK(padded.length() == shape.length);
        CHECK(padded.short_length() == shape.short_length);
        std::vector<Bin> whole(shape.length, Bin{Lanes{}, Lanes{}});
        for (std::size_t at = 0; at < shape.values; ++at) {
            const auto from = static_cast<float>(at);
            whole[at] = {Lanes{std::sin(from), from, 1, 0}, Lanes{std::cos(3 * from), -1, 0, from}};
        }
        const std::vector<Bin> frame(
            whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(shape.short_length));
        std::vector<Bin> found(shape.length);
        padded.forward(frame, found);
        FrameTransform(shape.length).forward(whole.data());
        for (std::size_t bin = 0; bin < shape.length; ++bin) {
            const Bin& one = found[padded.place(bin)];
            for (std::size_t lane = 0; lane < lane_count; ++lane) {
                CHECK(std::abs(one.r[lane] - whole[bin].r[lane]) < 0.02F);
                CHECK(std::abs(one.i[lane] - whole[bin].i[lane]) < 0.02F);
            }
        }
    }
}

TEST_CASE("a single sample, a single column, and odd widths") {
    for (const std::size_t count : {1U, 2U, 441U, 442U, 3'000U, 17'000U}) {
        const auto picture = picture_of_sound(chords(count), 1);
        REQUIRE(picture);
        CHECK(picture->width == static_cast<int>((count + 440) / 441));
        const auto played = sound_of_picture(view(*picture), 1, scaled_to(*picture, 2));
        REQUIRE(played);
        CHECK(played->samples.size() == static_cast<std::size_t>(picture->width) * 441);
        CHECK(std::all_of(played->samples.begin(), played->samples.end(),
                          [](float sample) { return std::isfinite(sample); }));
    }
}

TEST_CASE("images of the wrong size are refused with their size") {
    const std::vector<std::uint8_t> pixels(512 * 4);
    CHECK(refusal(sound_of_picture({4, 512, 2, pixels}, 1)).find("4096") != std::string::npos);
    CHECK(refusal(sound_of_picture({8, 256, 1, pixels}, 1)).find("256") != std::string::npos);
    CHECK(refusal(sound_of_picture({0, 512, 1, {}}, 1)).find("width") != std::string::npos);
    CHECK(refusal(sound_of_picture({30'001, 512, 1, {}}, 1)).find("30001") != std::string::npos);
    CHECK(refusal(sound_of_picture({4, 512, 3, pixels}, 1)).find("channels") != std::string::npos);
    CHECK(refusal(sound_of_picture({-4, 512, 1, pixels}, 1)).find("-4") != std::string::npos);
}

TEST_CASE("invalid audio is refused") {
    std::vector<float> sound = chords(2'000);
    CHECK(!picture_of_sound({}, 1));
    CHECK(!picture_of_sound(sound, 0));
    CHECK(!picture_of_sound(std::span(sound).first(3), 2));
    CHECK(!picture_of_sound(std::vector<float>(441 * 30'000 + 1), 1));
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        sound[1'500] = bad;
        const auto picture = picture_of_sound(sound, 1);
        REQUIRE(!picture);
        CHECK(picture.error().code == ErrorCode::invalid_argument);
        CHECK(!finished(sound, 1, 44'100));
    }
}

TEST_CASE("parameters out of range are refused with the reason") {
    const auto refused = [](auto change) {
        Parameters parameters;
        change(parameters);
        const auto checked = parameters.check();
        return checked ? std::string() : checked.error().message;
    };
    CHECK(refused([](Parameters&) {}).empty());
    CHECK(refused([](Parameters& p) { p.hop_samples = 4'000; }).find("columns") !=
          std::string::npos);
    CHECK(refused([](Parameters& p) { p.window_samples = 4'411; }).find("window") !=
          std::string::npos);
    CHECK(refused([](Parameters& p) { p.highest_hz = 30'000; }).find("frequency") !=
          std::string::npos);
    CHECK(refused([](Parameters& p) { p.largest = std::nan(""); }).find("largest") !=
          std::string::npos);
    CHECK(refused([](Parameters& p) { p.power = std::nanf(""); }).find("power") !=
          std::string::npos);
    CHECK(refused([](Parameters& p) { p.momentum = 1; }).find("momentum") != std::string::npos);
}

TEST_CASE("progress increases to 1, and cancellation ends the work") {
    const auto picture = picture_of_sound(chords(80 * 441), 1);
    REQUIRE(picture);
    std::vector<double> fractions;
    const auto collect = [&](double done) { fractions.push_back(done); };
    REQUIRE(sound_of_picture(view(*picture), 1, {}, collect));
    CHECK(std::is_sorted(fractions.begin(), fractions.end()));
    CHECK(fractions.size() > 30);
    CHECK(fractions.back() == 1);

    const CancelToken token;
    int calls = 0;
    const auto cancel = [&](double) {
        if (++calls == 5) token.cancel();
    };
    const auto played = sound_of_picture(view(*picture), 1, {}, cancel, token);
    REQUIRE(!played);
    CHECK(played.error().code == ErrorCode::cancelled);
    CHECK(calls == 5);
    const auto drawn = picture_of_sound(chords(441), 1, {}, {}, token);
    REQUIRE(!drawn);
    CHECK(drawn.error().code == ErrorCode::cancelled);
}

TEST_CASE("finished audio has the same loudness at any audible scale, and peaks below -1.5 dBFS") {
    constexpr int highest_peak = 27'571;  // 32,768 times 10^(-1.5 / 20)
    std::vector<std::int16_t> first;
    for (const float level : {0.005F, 0.5F, 50.0F}) {
        std::vector<float> sound = chords(44'100);
        for (float& sample : sound) sample *= level;
        const auto whole = finished(sound, 1, 44'100);
        REQUIRE(whole);
        REQUIRE(whole->size() == sound.size());
        const auto [lowest, highest] = std::minmax_element(whole->begin(), whole->end());
        CHECK(std::max(-*lowest, static_cast<int>(*highest)) <= highest_peak);
        CHECK(std::max(-*lowest, static_cast<int>(*highest)) > highest_peak / 8);
        if (first.empty()) first = *whole;
        bool same = true;
        for (std::size_t at = 0; at < first.size(); ++at) {
            same = same && std::abs(first[at] - (*whole)[at]) <= 1;
        }
        CHECK(same);
    }
    // A click over noise would exceed the range, so the gain is lower around it.
    std::vector<float> click(44'100);
    for (std::size_t at = 0; at < click.size(); ++at) {
        click[at] = at % 20 < 10 ? 0.001F : -0.001F;
    }
    click[20'000] = 0.1F;
    const auto whole = finished(click, 1, 44'100);
    REQUIRE(whole);
    CHECK((*whole)[20'000] <= highest_peak);
    CHECK((*whole)[20'000] > 2 * (*whole)[100]);
    CHECK((*whole)[100] > 100);
    CHECK((*whole)[110] == -(*whole)[100]);
}

TEST_CASE("audio that is almost silent stays almost silent") {
    const auto highest = [](float level) {
        std::vector<float> sound = chords(44'100);
        for (float& sample : sound) sample *= level;
        const auto whole = finished(sound, 1, 44'100);
        REQUIRE(whole);
        return static_cast<int>(*std::max_element(whole->begin(), whole->end()));
    };
    CHECK(highest(1e-30F) == 0);
    CHECK(highest(1e-8F) == 0);
    int before = highest(1e-6F);
    CHECK(before > 0);
    CHECK(before < 50);
    // The gain does not jump at the gate.
    for (int doublings = 1; doublings < 14; ++doublings) {
        const int now = highest(std::ldexp(1e-6F, doublings));
        CHECK(now >= before - 1);
        CHECK(now <= 2 * before + 2);
        before = now;
    }
}
