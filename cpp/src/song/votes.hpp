// The first stage: finds places in songs with pairs of peaks like those of the snippet.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "polymux/song/query.hpp"
#include "polymux/song/segment.hpp"

namespace polymux::song {

/// A timeline frame of a segment where the snippet may begin, and the number of pairs that support
/// it. `frame` is shifted by `Votes::bias`, to keep it from being negative.
struct Place {
    std::uint32_t frame = 0;
    int votes = 0;
};

/// Looks up a snippet's pairs and counts the positions that they imply. Reuses its memory; one
/// thread at a time.
class Votes {
public:
    static constexpr std::uint32_t bias = 4'096;

    Votes(const Query& query, const Parameters& parameters);

    /// Looks up all pairs as if the snippet were played at `speed` times the song's speed.
    void look_up(const Segment& segment, float speed);

    /// The best places from the last lookup, if the snippet's time runs `time_factor` times as fast
    /// as the song's. Valid until the next call.
    std::span<const Place> count(float time_factor);

private:
    struct Pair {
        float frame = 0;
        float frames = 0;
        float bin = 0;
        float bins = 0;
    };
    struct Hit {
        std::uint32_t frame = 0;
        float query_frame = 0;
    };

    void make_pairs(const Query& query);
    void append_keys(const Pair& pair, float speed);
    void find_places();

    const Parameters& parameters_;
    std::vector<Pair> pairs_;
    std::vector<std::uint32_t> keys_;
    std::vector<float> key_frames_;
    std::vector<Hit> hits_;
    std::vector<std::uint32_t> begins_;
    std::vector<std::uint8_t> buckets_;
    std::vector<Place> places_;
};

}  // namespace polymux::song
