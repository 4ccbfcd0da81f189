// Fingerprints: what affects them, and what must not.
#include "polymux/song/fingerprint.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "polymux/song/query.hpp"
#include "song/fingerprint_parts.hpp"
#include "song/mono.hpp"
#include "song_sounds.hpp"

using namespace polymux::song;
using polymux::song_tests::melody;

namespace {

std::vector<FingerprintPart> fingerprint(std::span<const float> samples, std::size_t piece) {
    Fingerprinter fingerprinter;
    for (std::size_t at = 0; at < samples.size(); at += piece) {
        fingerprinter.feed(samples.subspan(at, std::min(piece, samples.size() - at)));
    }
    return fingerprinter.finish();
}

}  // namespace

TEST_CASE("pieces of any size give the same fingerprint") {
    const std::vector<float> sound = melody(1, 20.0);
    const auto whole = fingerprint(sound, sound.size());
    REQUIRE(whole.size() == 1);
    CHECK(whole[0].fingerprint.peaks[0].size() > 150);
    CHECK(whole[0].fingerprint.peaks[1].size() > 150);
    for (const std::size_t piece : {1UL, 127UL, 4'096UL, 50'001UL}) {
        const auto pieces = fingerprint(sound, piece);
        REQUIRE(pieces.size() == 1);
        CHECK(pieces[0].fingerprint.peaks[0] == whole[0].fingerprint.peaks[0]);
        CHECK(pieces[0].fingerprint.peaks[1] == whole[0].fingerprint.peaks[1]);
    }
}

TEST_CASE("a steady tone is found at its frequency, in both windows") {
    const std::vector<float> sound = polymux::song_tests::bursts(1'000.0, 10.0);
    const auto parts = fingerprint(sound, 4'096);
    for (const auto& peaks : parts[0].fingerprint.peaks) {
        REQUIRE(!peaks.empty());
        CHECK(std::is_sorted(peaks.begin(), peaks.end()));
        const auto near = std::count_if(peaks.begin(), peaks.end(), [](PackedPeak peak) {
            const float hz = static_cast<float>(frequency_of(peak)) * frequency_unit_hz;
            return hz > 998.0F && hz < 1'002.0F;
        });
        // One for each burst, of which there are two in a second.
        CHECK(near >= 18);
    }
}

TEST_CASE("silence has no peaks, and empty input has one part") {
    const std::vector<float> silence(80'000);
    const auto parts = fingerprint(silence, 4'096);
    REQUIRE(parts.size() == 1);
    CHECK(parts[0].fingerprint.frames == 625);
    CHECK(parts[0].fingerprint.peaks[0].empty());
    const auto none = fingerprint({}, 1);
    REQUIRE(none.size() == 1);
    CHECK(none[0].fingerprint.frames == 0);
}

TEST_CASE("a recording of more than 4.6 hours has parts, whose peaks lie within them") {
    constexpr std::uint64_t border = max_track_frames;
    const std::vector<TimedPeak> first = {
        {.frame = 7, .frequency = 1},          {.frame = border - 1, .frequency = 2},
        {.frame = border, .frequency = 0},     {.frame = border, .frequency = 4'000},
        {.frame = 2 * border, .frequency = 5}, {.frame = 2 * border + 9, .frequency = 6}};
    const auto parts = parts_of(2 * border + 10, first, std::span(first).subspan(5));
    REQUIRE(parts.size() == 3);
    CHECK(parts[0].fingerprint.frames == border);
    CHECK(parts[1].first_frame == border);
    CHECK(parts[2].first_frame == 2 * border);
    CHECK(parts[2].fingerprint.frames == 10);
    using Peaks = std::vector<PackedPeak>;
    const auto last = static_cast<std::uint32_t>(border - 1);
    CHECK(parts[0].fingerprint.peaks[0] == Peaks{pack(7, 1), pack(last, 2)});
    CHECK(parts[1].fingerprint.peaks[0] == Peaks{pack(0, 0), pack(0, 4'000)});
    CHECK(parts[2].fingerprint.peaks[0] == Peaks{pack(0, 5), pack(9, 6)});
    CHECK(parts[0].fingerprint.peaks[1].empty());
    CHECK(parts[2].fingerprint.peaks[1] == Peaks{pack(9, 6)});
    // Exactly full: no empty part follows.
    CHECK(parts_of(border, first, {}).size() == 1);
}

TEST_CASE("the loudest part of a long snippet is used") {
    const Parameters parameters;
    std::vector<float> samples(8'000 * 100, 0.001F);
    std::fill(samples.begin() + 8'000 * 50, samples.begin() + 8'000 * 80, 0.5F);
    const std::span<const float> part = loudest_part(samples, parameters);
    CHECK(part.size() == 8'000 * 30);
    CHECK(part.data() - samples.data() == 8'000 * 50);
    const std::span<const float> whole = loudest_part(std::span(samples).first(1'000), parameters);
    CHECK(whole.size() == 1'000);
}

TEST_CASE("inaudible input and input shorter than a second give no query") {
    std::vector<float> sound = melody(4, 3.0);
    CHECK(!make_query(sound).peaks.empty());
    CHECK(make_query(std::span(sound).first(7'000)).peaks.empty());
    for (float& sample : sound) {
        sample *= 2e-5F;
    }
    CHECK(make_query(sound).peaks.empty());
    CHECK(make_query({}).peaks.empty());
}

TEST_CASE("a query round-trips through its bytes, and other bytes are refused") {
    const Parameters parameters;
    const Query query = make_query(melody(5, 3.0));
    const std::vector<std::byte> bytes = to_bytes(query, parameters);
    const auto back = query_of(bytes, parameters);
    REQUIRE(back);
    CHECK(back->frames == query.frames);
    CHECK(to_bytes(*back, parameters) == bytes);
    for (std::size_t size = 0; size < bytes.size(); size += 13) {
        CHECK(!query_of(std::span(bytes).first(size), parameters));
    }
    std::vector<std::byte> longer = bytes;
    longer.push_back(std::byte{0});
    CHECK(!query_of(longer, parameters));
    for (std::size_t at = 0; at < bytes.size(); at += 7) {
        std::vector<std::byte> damaged = bytes;
        damaged[at] ^= std::byte{0xFF};
        // Rejected or accepted, but never a peak outside of the snippet.
        if (const auto taken = query_of(damaged, parameters); taken) {
            for (const QueryPeak& peak : taken->peaks) {
                CHECK(peak.frame <= static_cast<float>(taken->frames));
            }
        }
    }
    Parameters other = parameters;
    other.hop_samples = 64;
    CHECK(!query_of(bytes, other));
}

TEST_CASE("of two opposite channels, the louder one is used") {
    const std::vector<float> sound = melody(6, 1.0);
    const auto chosen = [&sound](float left, float right) {
        std::vector<float> stereo;
        for (const float sample : sound) {
            stereo.push_back(sample * left);
            stereo.push_back(sample * right);
        }
        ChannelPowers powers(Parameters{});
        powers.take(stereo);
        return powers.choice();
    };
    CHECK(chosen(1, 1) == MonoChoice::middle);
    CHECK(chosen(1, 0) == MonoChoice::middle);
    CHECK(chosen(1, -1) == MonoChoice::left);
    CHECK(chosen(0.9F, -1) == MonoChoice::right);
    CHECK(chosen(0, 0) == MonoChoice::middle);
    std::vector<float> mono;
    append_mono(std::vector<float>{1, 3, 5, 7}, MonoChoice::right, {}, mono);
    append_mono(std::vector<float>{1, 3, 5, 7}, MonoChoice::middle, {}, mono);
    CHECK(mono == std::vector<float>{3, 7, 2, 6});
}

TEST_CASE("NaN and infinite samples are silence") {
    constexpr float none = std::numeric_limits<float>::quiet_NaN();
    constexpr float endless = std::numeric_limits<float>::infinity();
    std::vector<float> mono;
    append_mono(std::vector<float>{none, 1, endless, 3, -endless, none, 1e30F, 5},
                MonoChoice::middle, {}, mono);
    CHECK(mono == std::vector<float>{0.5F, 1.5F, 0, 2.5F});
    ChannelPowers powers(Parameters{});
    powers.take(std::vector<float>{none, 0.5F, 0.5F, 0.5F, endless, 0});
    CHECK(powers.choice() == MonoChoice::middle);
}

TEST_CASE("parameters of stored data change the hash, others do not") {
    const Parameters parameters;
    Parameters stored = parameters;
    stored.windows[1].song_peaks_per_band = 6;
    CHECK(stored.hash() != parameters.hash());
    const auto changes = [&parameters](auto Parameters::* member) {
        Parameters other = parameters;
        other.*member += 1;
        return other.hash() != parameters.hash();
    };
    CHECK(changes(&Parameters::max_side_over_middle));
    CHECK(changes(&Parameters::loudest_sample));
    CHECK(changes(&Parameters::silence_power));
    CHECK(changes(&Parameters::lowest_level));
    CHECK(changes(&Parameters::level_range));
    CHECK(changes(&Parameters::slice_frames));
    CHECK(changes(&Parameters::usual_frames));
    CHECK(changes(&Parameters::baseline_bins));
    Parameters asked = parameters;
    asked.query_fan = 9;
    asked.max_query_s = 20;
    asked.search.step = 0.01F;
    asked.likelihood.min_chance = 0.1F;
    asked.decision.accepted = 0.5F;
    asked.same_recording.min_hits = 1;
    CHECK(asked.hash() == parameters.hash());
}
