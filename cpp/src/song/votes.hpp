// The first stage: which places of which songs have pairs of peaks like those of the snippet.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "polymux/song/query.hpp"
#include "polymux/song/segment.hpp"

namespace polymux::song {

/// A frame of a segment's line of time where the snippet may begin, and how many pairs say so.
/// `frame` is off by `Votes::bias`, so that it is never negative.
struct Place {
    std::uint32_t frame = 0;
    int votes = 0;
};

/// Looks up a snippet's pairs, and counts where they would have it begin. Keeps its memory from
/// one use to the next; one thread at a time.
class Votes {
public:
    static constexpr std::uint32_t bias = 4'096;

    Votes(const Query& query, const Parameters& parameters);

    /// Looks up all pairs as if the snippet were played `speed` times as fast as the song.
    void look_up(const Segment& segment, float speed);

    /// The best places, if the snippet's time runs `time_factor` times as fast as the song's, from
    /// what was looked up last. Valid until the next call.
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
