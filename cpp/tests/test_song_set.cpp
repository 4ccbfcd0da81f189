#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "song_set_support.hpp"

using namespace polymux;
using namespace polymux::song;
using namespace polymux::testing;

TEST_CASE("added songs are found, in memory and in files, by this set and others") {
    const TemporaryFolder folder;
    const std::string path = folder.file("index");
    const auto writer = opened(path);
    const auto reader = opened(path);
    check_songs(*writer, {});
    add(*writer, 1, 1);
    add(*writer, 2, 2);
    check_songs(*writer, {1, 2});
    CHECK(writer->snapshot()->memory_bytes() > 0);
    CHECK(writer->snapshot()->generation == 0);
    check_songs(*reader, {});
    CHECK_FALSE(*reader->refresh());

    REQUIRE(writer->publish(2));
    check_songs(*writer, {1, 2});
    CHECK(writer->snapshot()->memory_bytes() == 0);
    CHECK(writer->snapshot()->generation == 1);
    CHECK_FALSE(*writer->refresh());
    CHECK(*reader->refresh());
    CHECK_FALSE(*reader->refresh());
    check_songs(*reader, {1, 2});
    CHECK(reader->snapshot()->generation == 1);
    CHECK(reader->snapshot()->covered_sequence == 2);
    const auto late = opened(path);
    check_songs(*late, {1, 2});
    CHECK(late->snapshot()->damaged.empty());
}

TEST_CASE("a snapshot stays as it was") {
    const TemporaryFolder folder;
    const auto set = opened(folder.path());
    add(*set, 1, 1);
    REQUIRE(set->publish(1));
    const auto before = set->snapshot();
    remove(*set, 1, 2);
    add(*set, 2, 3);
    REQUIRE(set->publish(3));
    check_songs(*set, {2});
    CHECK(before->songs() == Songs{1});
    CHECK(found_by(*before, 1) == Songs{1});
    CHECK(folder.entries().size() == 2);
}

TEST_CASE("removed songs are no longer found, and may be added again") {
    const TemporaryFolder folder;
    const auto set = opened(folder.path());
    const auto reader = opened(folder.path());
    // One large file, which later additions are not merged with.
    std::vector<Track> tracks;
    for (std::int64_t song = 1; song <= 20; ++song) tracks.push_back(track_of(song));
    REQUIRE(set->add(tracks, 1));
    REQUIRE(set->publish(1));
    remove(*set, 7, 2);
    remove(*set, 99, 3);
    CHECK(found_by(*set->snapshot(), 7).empty());
    REQUIRE(set->publish(3));
    CHECK(*reader->refresh());
    for (const SongSet* const one : {set.get(), reader.get()}) {
        CHECK(one->snapshot()->songs().size() == 19);
        CHECK(found_by(*one->snapshot(), 7).empty());
        CHECK(found_by(*one->snapshot(), 8) == Songs{8});
    }
    add(*set, 7, 4);
    CHECK(found_by(*set->snapshot(), 7) == Songs{7});
    REQUIRE(set->publish(4));
    CHECK(*reader->refresh());
    CHECK(files_in(*reader->snapshot()) == 2);
    CHECK(found_by(*reader->snapshot(), 7) == Songs{7});
    remove(*set, 7, 5);
    CHECK(found_by(*set->snapshot(), 7).empty());
    // If much was removed, the file is rewritten.
    const std::uint64_t large = std::filesystem::file_size(first_segment(folder));
    for (std::int64_t song = 1; song <= 12; ++song) remove(*set, song, 5 + song);
    REQUIRE(set->publish(17));
    CHECK(*reader->refresh());
    check_songs(*reader, {13, 14, 15, 16, 17, 18, 19, 20});
    CHECK(files_in(*reader->snapshot()) == 1);
    CHECK(std::filesystem::file_size(first_segment(folder)) < large / 2);
    for (std::int64_t song = 13; song <= 20; ++song) remove(*set, song, 10 + song);
    REQUIRE(set->publish(30));
    check_songs(*set, {});
    CHECK(folder.entries() == std::vector<std::string>{"manifest"});
}

TEST_CASE("many single additions make few parts and few files") {
    const TemporaryFolder folder;
    const auto set = opened(folder.path());
    Songs songs;
    for (std::int64_t song = 1; song <= 100; ++song) {
        add(*set, song, song, 300);
        songs.push_back(song);
        CHECK(set->snapshot()->parts.size() <= 8);
    }
    CHECK(set->snapshot()->songs() == songs);
    for (std::int64_t song = 101; song <= 150; ++song) {
        add(*set, song, song, 300);
        songs.push_back(song);
        REQUIRE(set->publish(song));
        CHECK(files_in(*set->snapshot()) <= 8);
        CHECK(folder.entries().size() == files_in(*set->snapshot()) + 1);
    }
    const auto reader = opened(folder.path());
    CHECK(reader->snapshot()->songs() == songs);
    for (const std::int64_t song : {1, 50, 101, 150}) {
        CHECK(found_by(*reader->snapshot(), song, 300) == Songs{song});
    }
}

TEST_CASE("more songs than one part can hold become several parts") {
    const TemporaryFolder folder;
    const auto set = opened(folder.path());
    std::vector<Track> tracks(40, Track{.song = 5, .first_frame = 0, .fingerprint = {}});
    for (Track& track : tracks) track.fingerprint.frames = max_track_frames;
    tracks.push_back(track_of(6));
    REQUIRE(set->add(tracks, 1));
    CHECK(set->snapshot()->parts.size() == 2);
    REQUIRE(set->publish(1));
    const auto reader = opened(folder.path());
    CHECK(files_in(*reader->snapshot()) == 2);
    CHECK(reader->snapshot()->songs() == Songs{5, 6});
    CHECK(found_by(*reader->snapshot(), 6) == Songs{6});
}

TEST_CASE("every key is found even if frames need all their bits") {
    std::vector<Track> tracks(20, Track{.song = 5, .first_frame = 0, .fingerprint = {}});
    for (Track& track : tracks) track.fingerprint.frames = max_track_frames;
    tracks.push_back(track_of(6, 20'000));
    const auto bytes = build_segment(parameters, tracks);
    REQUIRE(bytes.has_value());
    const auto segment = Segment::open(*bytes, parameters);
    REQUIRE(segment.has_value());
    REQUIRE((segment->frames() >> (max_frame_bits - 1)) == 1);
    std::vector<KeyedFrame> pairs;
    append_pairs(tracks.back().fingerprint.peaks[0], parameters, pairs);
    REQUIRE(pairs.size() > 10'000);
    const std::uint32_t base = segment->track(20).base_frame;
    std::size_t lost = 0;
    for (const KeyedFrame& pair : pairs) {
        bool found = false;
        segment->find(pair.key, [&](std::uint32_t frame) { found |= frame == base + pair.frame; });
        lost += found ? 0 : 1;
    }
    CHECK(lost == 0);
}

TEST_CASE("tracks that cannot be added change nothing") {
    const TemporaryFolder folder;
    const auto set = opened(folder.path());
    Track tracks[2] = {track_of(1), track_of(2)};
    std::reverse(tracks[1].fingerprint.peaks[0].begin(), tracks[1].fingerprint.peaks[0].end());
    const auto added = set->add(tracks, 1);
    REQUIRE_FALSE(added.has_value());
    CHECK(added.error().code == ErrorCode::invalid_argument);
    check_songs(*set, {});
}

TEST_CASE("a refresh keeps changes in memory that the files do not cover yet") {
    const TemporaryFolder folder;
    const auto writer = opened(folder.path());
    const auto reader = opened(folder.path());
    std::vector<Track> tracks;
    for (std::int64_t song = 1; song <= 9; ++song) tracks.push_back(track_of(song));
    REQUIRE(writer->add(tracks, 1));
    REQUIRE(writer->publish(1));
    REQUIRE(*reader->refresh());
    // Both follow one database; the reader is ahead of the published index.
    add(*reader, 11, 2, 4'000);
    remove(*reader, 3, 3);
    add(*reader, 12, 4);
    remove(*reader, 4, 5);
    add(*writer, 11, 2, 4'000);
    remove(*writer, 3, 3);
    REQUIRE(writer->publish(3));
    REQUIRE(*reader->refresh());
    CHECK(reader->snapshot()->covered_sequence == 3);
    CHECK(reader->snapshot()->songs() == Songs{1, 2, 5, 6, 7, 8, 9, 11, 12});
    CHECK(found_by(*reader->snapshot(), 11, 4'000) == Songs{11});
    CHECK(found_by(*reader->snapshot(), 12) == Songs{12});
    add(*writer, 12, 4);
    remove(*writer, 4, 5);
    REQUIRE(writer->publish(5));
    REQUIRE(*reader->refresh());
    CHECK(reader->snapshot()->memory_bytes() == 0);
    CHECK(reader->snapshot()->songs() == Songs{1, 2, 5, 6, 7, 8, 9, 11, 12});
}

TEST_CASE("two alternating writers build on each other") {
    const TemporaryFolder folder;
    const auto one = opened(folder.path());
    const auto other = opened(folder.path());
    Songs songs;
    for (std::int64_t song = 1; song <= 12; ++song) {
        SongSet& set = song % 2 == 0 ? *one : *other;
        add(set, song, song);
        REQUIRE(set.publish(song));
        songs.push_back(song);
        check_songs(set, songs);
    }
}

TEST_CASE("searching continues while songs are added, removed and published") {
    const TemporaryFolder folder;
    const auto writer = opened(folder.path());
    const auto reader = opened(folder.path());
    add(*writer, 1'000, 1);
    REQUIRE(writer->publish(1));
    std::atomic<bool> done = false;
    std::atomic<int> searches = 0;
    std::atomic<int> wrong = 0;
    const auto search = [&](SongSet& set) {
        do {
            const auto refreshed = set.refresh();
            const auto snapshot = set.snapshot();
            const Songs songs = snapshot->songs();
            const bool has_it = std::binary_search(songs.begin(), songs.end(), 1'000);
            if (!refreshed || !snapshot->damaged.empty() || !has_it) ++wrong;
            ++searches;
        } while (!done);
    };
    {
        std::vector<std::jthread> threads;
        REQUIRE(*reader->refresh());
        threads.emplace_back([&] { search(*writer); });
        threads.emplace_back([&] { search(*reader); });
        threads.emplace_back([&] { search(*reader); });
        for (std::int64_t song = 2; song <= 40; ++song) {
            add(*writer, song, 2 * song, 300);
            if (song % 3 == 0) remove(*writer, song, 2 * song + 1);
            if (song % 2 == 0) REQUIRE(writer->publish(2 * song + 1));
        }
        done = true;
    }
    CHECK(searches >= 3);
    CHECK(wrong == 0);
    REQUIRE(reader->refresh());
    CHECK(reader->snapshot()->songs() == writer->snapshot()->songs());
    CHECK(reader->snapshot()->songs().size() == 27);
}
