// Finds songs by snippets, and rejects unknown ones.
#include "polymux/song/matcher.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "polymux/song/fingerprint.hpp"
#include "song_sounds.hpp"
#include "support.hpp"

using namespace polymux::song;
using polymux::CancelToken;
using polymux::song_tests::melody;

namespace {

constexpr int song_count = 12;
constexpr double song_s = 40.0;

/// An index in memory; song n is melody n.
const SongSnapshot& known_songs() {
    static const std::shared_ptr<const SongSnapshot> snapshot = [] {
        auto set = SongSet::open("/nonexistent/songs", Parameters{});
        REQUIRE(set);
        for (int song = 1; song <= song_count; ++song) {
            Fingerprinter fingerprinter;
            fingerprinter.feed(melody(static_cast<std::uint32_t>(song), song_s));
            std::vector<Track> tracks;
            for (FingerprintPart& part : fingerprinter.finish()) {
                tracks.push_back({.song = song,
                                  .first_frame = part.first_frame,
                                  .fingerprint = std::move(part.fingerprint)});
            }
            REQUIRE((*set)->add(tracks, song));
        }
        return (*set)->snapshot();
    }();
    return *snapshot;
}

/// A snippet of the song, or of the same notes faster or higher. Position and length refer to the
/// played audio.
std::vector<float> cut(int song, double from_s, double seconds, double tempo = 1.0,
                       double pitch = 1.0) {
    const std::vector<float> sound = melody(static_cast<std::uint32_t>(song), song_s, tempo, pitch);
    const auto first = static_cast<std::size_t>(from_s * 8'000.0);
    return {sound.begin() + static_cast<std::ptrdiff_t>(first),
            sound.begin() +
                static_cast<std::ptrdiff_t>(first + static_cast<std::size_t>(seconds * 8'000.0))};
}

std::vector<Candidate> find(const std::vector<float>& snippet,
                            const std::function<bool(std::int64_t)>& excluded = {}) {
    return find_songs(known_songs(), make_query(snippet), Parameters{}, excluded);
}

}  // namespace

TEST_CASE("a snippet identifies its song and position, and that nothing was changed") {
    for (const int song : {1, 4, 8, song_count}) {
        const double from_s = 3.017 + song;
        const auto found = find(cut(song, from_s, 5.0));
        REQUIRE(!found.empty());
        CHECK(found[0].song == song);
        CHECK(found[0].accepted);
        CHECK(found[0].offset_s == doctest::Approx(from_s).epsilon(0.01));
        CHECK(found[0].tempo == 1.0F);
        CHECK(found[0].pitch == 1.0F);
    }
}

TEST_CASE("a snippet in noise of equal level identifies its song") {
    std::vector<float> snippet = cut(5, 11.3, 5.0);
    polymux::song_tests::add_noise(snippet, 0.08F, 7);
    const auto found = find(snippet);
    REQUIRE(!found.empty());
    CHECK(found[0].song == 5);
    CHECK(found[0].accepted);
}

TEST_CASE("a snippet played faster or slower identifies its song and speed") {
    for (const double speed : {0.95, 0.973, 1.02, 1.05}) {
        const auto found = find(polymux::song_tests::played_at(cut(7, 9.0, 6.0), speed));
        REQUIRE(!found.empty());
        CHECK(found[0].song == 7);
        CHECK(found[0].accepted);
        CHECK(found[0].change == Change::speed);
        CHECK(found[0].tempo == doctest::Approx(speed).epsilon(0.004));
        CHECK(found[0].pitch == doctest::Approx(speed).epsilon(0.004));
    }
}

TEST_CASE("a snippet with the same pitches at another tempo identifies its song and tempo") {
    for (const int song : {2, 5}) {
        for (const double tempo : {0.96, 1.04}) {
            const auto found = find(cut(song, 8.0 + song, 6.0, tempo));
            REQUIRE(!found.empty());
            CHECK(found[0].song == song);
            CHECK(found[0].accepted);
            CHECK(found[0].change == Change::tempo);
            CHECK(found[0].tempo == doctest::Approx(tempo).epsilon(0.004));
            CHECK(found[0].pitch == 1.0F);
            CHECK(found[0].offset_s == doctest::Approx((8.0 + song) * tempo).epsilon(0.01));
        }
    }
}

TEST_CASE(
    "a snippet with the same times a semitone higher or lower identifies its song and pitch") {
    for (const int song : {3, 6}) {
        for (const double semitones : {-1.0, 1.0}) {
            const double pitch = std::exp2(semitones / 12.0);
            const auto found = find(cut(song, 8.0 + song, 6.0, 1.0, pitch));
            REQUIRE(!found.empty());
            CHECK(found[0].song == song);
            CHECK(found[0].accepted);
            CHECK(found[0].change == Change::pitch);
            CHECK(found[0].pitch == doctest::Approx(pitch).epsilon(0.004));
            CHECK(found[0].tempo == 1.0F);
            CHECK(found[0].offset_s == doctest::Approx(8.0 + song).epsilon(0.01));
        }
    }
}

TEST_CASE("a snippet changed beyond the search range matches no other song") {
    for (const double factor : {0.88, 1.12}) {
        for (const auto& found :
             {find(cut(4, 9.0, 6.0, factor)), find(cut(4, 9.0, 6.0, 1.0, factor))}) {
            CHECK((found.empty() || found[0].song == 4 || !found[0].accepted));
        }
    }
}

TEST_CASE("a minimum confidence changes what is accepted") {
    const Parameters parameters;
    std::vector<float> snippet = cut(5, 11.3, 3.0);
    polymux::song_tests::add_noise(snippet, 0.08F, 7);
    const auto found = find(snippet);
    REQUIRE(!found.empty());
    const Candidate& first = found[0];
    CHECK(first.accepted == is_answer(first, parameters.decision.accepted, parameters.decision));
    CHECK(is_answer(first, first.confidence, parameters.decision));
    CHECK_FALSE(is_answer(first, std::nextafter(first.confidence, 2.0F), parameters.decision));
    Candidate of_few = first;
    of_few.evidence[0].hits = parameters.decision.min_hits - 1;
    CHECK_FALSE(is_answer(of_few, 0.0F, parameters.decision));
}

TEST_CASE("other music does not match a song of the index") {
    for (std::uint32_t seed = 100; seed < 112; ++seed) {
        const auto found = find(melody(seed, 5.0));
        CHECK((found.empty() || !found[0].accepted));
    }
}

TEST_CASE("silence, noise and one tone match no song") {
    std::vector<float> noise(40'000);
    CHECK(find(noise).empty());
    polymux::song_tests::add_noise(noise, 0.1F, 1);
    const auto of_noise = find(noise);
    CHECK((of_noise.empty() || !of_noise[0].accepted));
    const auto of_tone = find(polymux::song_tests::bursts(440.0, 5.0));
    CHECK((of_tone.empty() || !of_tone[0].accepted));
}

TEST_CASE("an excluded song is not found") {
    const auto found = find(cut(3, 8.0, 5.0), [](std::int64_t song) { return song == 3; });
    CHECK((found.empty() || (found[0].song != 3 && !found[0].accepted)));
}

TEST_CASE("a canceled search finds nothing") {
    const CancelToken token;
    token.cancel();
    const Query query = make_query(melody(200, 5.0));
    CHECK(find_songs(known_songs(), query, Parameters{}, {}, token).empty());
}

TEST_CASE("a snippet that begins before the song is found") {
    std::vector<float> snippet(16'000);
    const std::vector<float> beginning = cut(9, 0.0, 4.0);
    snippet.insert(snippet.end(), beginning.begin(), beginning.end());
    const auto found = find(snippet);
    REQUIRE(!found.empty());
    CHECK(found[0].song == 9);
    CHECK(found[0].accepted);
    CHECK(found[0].offset_s == doctest::Approx(-2.0).epsilon(0.02));
}

TEST_CASE("the same recording is recognized, damaged or complete, and another is not") {
    std::vector<float> damaged = melody(4, song_s);
    polymux::song_tests::add_noise(damaged, 0.003F, 9);
    for (float& sample : damaged) {
        sample = std::tanh(2.0F * sample);
    }
    const auto same = [](const std::vector<float>& sound) {
        Fingerprinter fingerprinter;
        fingerprinter.feed(sound);
        return find_same_recordings(known_songs(), fingerprinter.finish()[0].fingerprint,
                                    Parameters{});
    };
    CHECK(same(melody(4, song_s)) == std::vector<std::int64_t>{4});
    CHECK(same(damaged) == std::vector<std::int64_t>{4});
    CHECK(same(melody(300, song_s)).empty());
    CHECK(same(melody(4, 0.5)).empty());
    CHECK(same({}).empty());
}
