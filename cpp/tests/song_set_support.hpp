// Sets of random songs, for tests of the index.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "polymux/song/song_set.hpp"
#include "song/manifest.hpp"
#include "song_tracks.hpp"
#include "support.hpp"

namespace polymux::testing {

using Songs = std::vector<std::int64_t>;

inline const song::Parameters parameters;

inline std::unique_ptr<song::SongSet> opened(const std::string& folder) {
    auto set = song::SongSet::open(folder, parameters);
    REQUIRE(set.has_value());
    return *std::move(set);
}

/// The track of song `song`, which always has the same peaks.
inline song::Track track_of(std::int64_t song, std::uint32_t frames = 2'000) {
    std::mt19937 random(static_cast<std::uint32_t>(song));
    return random_track(random, song, frames, frames / 5);
}

inline void add(song::SongSet& set, std::int64_t song, std::int64_t sequence,
                std::uint32_t frames = 2'000) {
    const song::Track track = track_of(song, frames);
    REQUIRE(set.add({&track, 1}, sequence));
}

inline void remove(song::SongSet& set, std::int64_t song, std::int64_t sequence) {
    REQUIRE(set.remove({&song, 1}, sequence));
}

/// The songs in whose tracks the pairs of that song's peaks are found, at the frames of the song;
/// once for each part that has it.
inline Songs found_by(const song::SongSnapshot& snapshot, std::int64_t song,
                      std::uint32_t frames = 2'000) {
    const song::Track track = track_of(song, frames);
    std::vector<song::KeyedFrame> pairs;
    song::append_pairs(track.fingerprint.peaks[0], parameters, pairs);
    Songs found;
    for (const auto& part : snapshot.parts) {
        const song::Segment& segment = part->segment;
        std::vector<std::size_t> votes(segment.track_count());
        for (const song::KeyedFrame& pair : pairs) {
            segment.find(pair.key, [&](std::uint32_t frame) {
                const auto place = segment.track_at(frame);
                REQUIRE(place.has_value());
                if (place->frame == static_cast<std::int32_t>(pair.frame)) ++votes[place->track];
            });
        }
        for (std::uint32_t index = 0; index < votes.size(); ++index) {
            const std::int64_t at = segment.track(index).song;
            if (votes[index] > pairs.size() / 2 && !part->is_removed(at)) found.push_back(at);
        }
    }
    return found;
}

/// Checks that the set has exactly these songs, each found once by its peaks.
inline void check_songs(const song::SongSet& set, const Songs& songs) {
    const auto snapshot = set.snapshot();
    CHECK(snapshot->songs() == songs);
    for (const std::int64_t song : songs) CHECK(found_by(*snapshot, song) == Songs{song});
}

inline std::size_t files_in(const song::SongSnapshot& snapshot) {
    return static_cast<std::size_t>(
        std::count_if(snapshot.parts.begin(), snapshot.parts.end(),
                      [](const auto& part) { return part->number != 0; }));
}

inline std::string first_segment(const TemporaryFolder& folder) {
    for (const std::string& name : folder.entries()) {
        if (song::segment_number(name)) return folder.file(name);
    }
    FAIL("no segment");
    return {};
}

}  // namespace polymux::testing
