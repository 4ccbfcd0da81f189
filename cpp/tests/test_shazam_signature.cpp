#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "polymux/song/shazam_signature.hpp"

using namespace polymux::song;

namespace {

using Samples = std::vector<std::int16_t>;

// Notes one after the other; `shift` starts with other notes.
Samples notes(std::size_t count, std::size_t shift = 0) {
    Samples samples(count);
    for (std::size_t i = 0; i < count; ++i) {
        const double hz = 300.0 + 170.0 * static_cast<double>((i / 3200 + shift) * 7 % 23);
        const double time_s = static_cast<double>(i) / shazam_rate_hz;
        const double fade = std::exp(-static_cast<double>(i % 3200) / 900.0);
        samples[i] = static_cast<std::int16_t>(20'000.0 * fade *
                                               std::sin(2 * std::numbers::pi * hz * time_s));
    }
    return samples;
}

std::uint32_t number_at(const ShazamSignature& signature, std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 4; i-- > 0;) {
        value = value << 8 | std::to_integer<std::uint32_t>(signature.bytes[at + i]);
    }
    return value;
}

}  // namespace

TEST_CASE("a signature of silence has a head and no peaks") {
    const auto signature = shazam_signature(Samples(64'000));
    REQUIRE(signature);
    CHECK(signature->peaks == 0);
    CHECK(signature->samples == 64'000);
    REQUIRE(signature->bytes.size() == 56);
    CHECK(number_at(*signature, 0) == 0xCAFE2580);
    CHECK(number_at(*signature, 8) == 8);
    CHECK(number_at(*signature, 40) == 64'000 + 3840);
    CHECK(number_at(*signature, 48) == 0x40000000);
}

TEST_CASE("less than a hop of audio is silence") {
    for (const std::size_t count : {0U, 1U, 127U, 128U, 5'000U}) {
        const auto signature = shazam_signature(notes(count));
        REQUIRE(signature);
        CHECK(signature->peaks == 0);
    }
}

TEST_CASE("equal audio has equal signatures, different audio different ones") {
    const auto first = shazam_signature(notes(80'000));
    const auto again = shazam_signature(notes(80'000));
    const auto other = shazam_signature(notes(80'000, 1));
    REQUIRE((first && again && other));
    CHECK(first->peaks > 10);
    CHECK(first->bytes == again->bytes);
    CHECK(first->bytes != other->bytes);
}

TEST_CASE("audio after a long silence is found at its frame") {
    Samples samples(64'000);
    const Samples sound = notes(32'000);
    samples.insert(samples.end(), sound.begin(), sound.end());
    const auto signature = shazam_signature(samples);
    REQUIRE(signature);
    REQUIRE(signature->peaks > 0);
    // After the band's head: the distance exceeds one byte, so the frame itself is written.
    CHECK(std::to_integer<unsigned>(signature->bytes[64]) == 255);
    CHECK(number_at(*signature, 65) >= 64'000 / 128);
}

TEST_CASE("the URI of a signature is base64") {
    const auto uri = [](std::string_view text) {
        return shazam_uri(std::as_bytes(std::span(text))).substr(33);
    };
    CHECK(shazam_uri({}) == "data:audio/vnd.shazam.sig;base64,");
    // RFC 4648, 10.
    CHECK(uri("f") == "Zg==");
    CHECK(uri("fo") == "Zm8=");
    CHECK(uri("foo") == "Zm9v");
    CHECK(uri("foobar") == "Zm9vYmFy");
}

TEST_CASE("the middle of the input is kept, for any piece sizes") {
    for (const std::size_t total : {0U, 5U, 10U, 11U, 30U, 31U, 1'000U, 10'001U}) {
        std::vector<float> given(total);
        for (std::size_t i = 0; i < total; ++i) given[i] = static_cast<float>(i) / 32768;
        for (const std::size_t piece : {1U, 7U, 4'096U}) {
            MiddleSegment segment(10);
            for (std::size_t at = 0; at < total; at += piece) {
                segment.append(std::span(given).subspan(at, std::min(piece, total - at)));
            }
            CHECK(segment.given() == total);
            const auto kept = segment.samples();
            REQUIRE(kept.size() == std::min<std::size_t>(total, 10));
            const std::size_t first = total > 10 ? total / 2 - 5 : 0;
            for (std::size_t i = 0; i < kept.size(); ++i) {
                CHECK(kept[i] == static_cast<std::int16_t>(first + i));
            }
        }
    }
}

TEST_CASE("samples that are too loud or not finite") {
    MiddleSegment segment;
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> given{
        2.0F, -2.0F, infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 1.0F, -1.0F};
    segment.append(given);
    const auto kept = segment.samples();
    CHECK(Samples(kept.begin(), kept.end()) ==
          Samples{32767, -32768, 32767, -32768, 0, 32767, -32768});
}
