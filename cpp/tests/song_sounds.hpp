// Reproducible audio for the tests of songs.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

namespace polymux::song_tests {

inline constexpr double rate_hz = 8'000.0;

/// Notes of three voices with overtones, over a little noise. Every seed is another song. The notes
/// follow each other `tempo` times as fast, and sound `pitch` times as high. Neither changes the
/// other, as in a new performance without stretching. `seconds` is the length of the unchanged
/// song.
inline std::vector<float> melody(std::uint32_t seed, double seconds, double tempo = 1.0,
                                 double pitch = 1.0) {
    std::mt19937 random(seed);
    const auto written = static_cast<std::size_t>(seconds * rate_hz);
    const auto played = [tempo](std::size_t samples) {
        return static_cast<std::size_t>(static_cast<double>(samples) / tempo);
    };
    std::vector<float> sound(played(written));
    for (int voice = 0; voice < 3; ++voice) {
        std::size_t note = 0;
        while (note < written) {
            const std::size_t note_length = 1'000 + random() % 3'000;
            const double hz = pitch * 110.0 * std::exp2(static_cast<double>(random() % 36) / 12.0);
            const std::size_t at = played(note);
            const std::size_t length = played(note_length);
            for (std::size_t index = 0; index < length && at + index < sound.size(); ++index) {
                const double seconds_in = static_cast<double>(index) / rate_hz;
                const double fading = std::exp(-4.0 * seconds_in);
                for (int overtone = 1; overtone <= 4; ++overtone) {
                    const double phase = 2.0 * std::numbers::pi * hz * overtone * seconds_in;
                    sound[at + index] +=
                        static_cast<float>(0.1 * fading / overtone * std::sin(phase));
                }
            }
            note += note_length;
        }
    }
    for (float& sample : sound) {
        sample += (static_cast<float>(random() % 2'001) / 1'000.0F - 1.0F) * 0.001F;
    }
    return sound;
}

/// A tone of this frequency for a fifth of every half second.
inline std::vector<float> bursts(double hz, double seconds) {
    std::vector<float> sound(static_cast<std::size_t>(seconds * rate_hz));
    for (std::size_t index = 0; index < sound.size(); ++index) {
        const double at = static_cast<double>(index) / rate_hz;
        const double within = std::fmod(at, 0.5) / 0.2;
        if (within < 1.0) {
            const double swell = std::sin(std::numbers::pi * within);
            sound[index] =
                static_cast<float>(0.5 * swell * std::sin(2.0 * std::numbers::pi * hz * at));
        }
    }
    return sound;
}

/// Adds noise of this root mean square.
inline void add_noise(std::vector<float>& sound, float level, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> noise(0.0F, level);
    for (float& sample : sound) {
        sample += noise(random);
    }
}

/// Played `speed` times as fast, by linear interpolation between samples.
inline std::vector<float> played_at(const std::vector<float>& sound, double speed) {
    std::vector<float> played;
    for (double at = 0; at + 1.0 < static_cast<double>(sound.size()); at += speed) {
        const auto before = static_cast<std::size_t>(at);
        const auto part = static_cast<float>(at - static_cast<double>(before));
        played.push_back(sound[before] * (1.0F - part) + sound[before + 1] * part);
    }
    return played;
}

}  // namespace polymux::song_tests
