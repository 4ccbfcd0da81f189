#include "song/votes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "song/keys.hpp"
#include "song/whole_part.hpp"

namespace polymux::song {

namespace {

/// Buckets for each hit. With more, fewer hits are near each other by chance; with fewer, they stay
/// in the cache. Buckets only exclude impossible places.
constexpr std::size_t buckets_per_hit = 8;
constexpr std::size_t min_buckets = 1U << 12U;
constexpr std::size_t max_buckets = 1U << 18U;
constexpr std::uint32_t bucket_frames = 2;
/// A hundred times the number for half a minute of music in a large library.
constexpr std::size_t max_hits = 4'000'000;

/// A number rounded to an integer, or to both neighbors if it is near the middle.
struct Rounded {
    std::array<int, 2> values = {0, 0};
    int count = 1;

    Rounded(float value, float margin) {
        values[0] = whole_part(value + 0.5F);
        const float past = value - static_cast<float>(values[0]);
        if (std::abs(past) >= 0.5F - margin) {
            values[1] = values[0] + (past > 0.0F ? 1 : -1);
            count = 2;
        }
    }
};

}  // namespace

Votes::Votes(const Query& query, const Parameters& parameters) : parameters_(parameters) {
    make_pairs(query);
}

void Votes::make_pairs(const Query& query) {
    const auto min_frames = static_cast<float>(parameters_.pair_min_frames);
    const auto max_frames = static_cast<float>(parameters_.pair_max_frames);
    const auto max_bins = static_cast<float>(parameters_.pair_max_bins);
    for (std::size_t first = 0; first < query.peaks.size(); ++first) {
        const QueryPeak& one = query.peaks[first];
        int made = 0;
        for (std::size_t second = first + 1;
             second < query.peaks.size() && made < parameters_.query_fan; ++second) {
            const QueryPeak& other = query.peaks[second];
            const float frames = other.frame - one.frame;
            const float bins = (other.frequency - one.frequency) / units_per_bin;
            if (frames > max_frames) {
                break;
            }
            if (frames < min_frames || std::abs(bins) > max_bins || std::abs(bins) < 0.5F) {
                continue;
            }
            pairs_.push_back({.frame = one.frame,
                              .frames = frames,
                              .bin = one.frequency / units_per_bin,
                              .bins = bins});
            ++made;
        }
    }
}

void Votes::append_keys(const Pair& pair, float speed) {
    const float margin = parameters_.query_rounding;
    const Rounded bin(pair.bin / speed, margin);
    const Rounded bins(pair.bins / speed, margin);
    // A key has half the frames, rounded down, so the center of its range is a half above it.
    const Rounded halves(pair.frames * speed / 2.0F - 0.25F, margin);
    for (int i = 0; i < bin.count; ++i) {
        for (int j = 0; j < bins.count; ++j) {
            for (int k = 0; k < halves.count; ++k) {
                keys_.push_back(key_of(bin.values[static_cast<std::size_t>(i)],
                                       bins.values[static_cast<std::size_t>(j)],
                                       halves.values[static_cast<std::size_t>(k)]));
                key_frames_.push_back(pair.frame);
            }
        }
    }
}

void Votes::look_up(const Segment& segment, float speed) {
    keys_.clear();
    key_frames_.clear();
    hits_.clear();
    for (const Pair& pair : pairs_) {
        append_keys(pair, speed);
    }
    segment.find_each(keys_, [&](std::size_t index, std::span<const std::uint32_t> postings) {
        if (postings.size() > parameters_.max_postings || hits_.size() > max_hits) {
            return;
        }
        for (const std::uint32_t posting : postings) {
            hits_.push_back(
                {.frame = segment.posting_frame(posting), .query_frame = key_frames_[index]});
        }
    });
}

std::span<const Place> Votes::count(float time_factor) {
    begins_.clear();
    const std::size_t wanted = std::bit_ceil(hits_.size() * buckets_per_hit);
    buckets_.assign(std::clamp(wanted, min_buckets, max_buckets), 0);
    const auto bucket_of = [mask = buckets_.size() - 1](std::uint32_t begin) noexcept {
        return (begin / bucket_frames) & mask;
    };
    for (const Hit& hit : hits_) {
        const auto before =
            static_cast<std::uint32_t>(whole_part(hit.query_frame * time_factor + 0.5F));
        const std::uint32_t begin = hit.frame + bias - before;
        begins_.push_back(begin);
        std::uint8_t& bucket = buckets_[bucket_of(begin)];
        bucket = static_cast<std::uint8_t>(bucket + (bucket < 255 ? 1 : 0));
    }
    const auto few = [this, &bucket_of](std::uint32_t begin) {
        const int near = buckets_[bucket_of(begin - bucket_frames)] + buckets_[bucket_of(begin)] +
                         buckets_[bucket_of(begin + bucket_frames)];
        return near < parameters_.min_votes;
    };
    begins_.erase(std::remove_if(begins_.begin(), begins_.end(), few), begins_.end());
    std::sort(begins_.begin(), begins_.end());
    find_places();
    return places_;
}

void Votes::find_places() {
    places_.clear();
    const auto width = static_cast<std::uint32_t>(parameters_.vote_frames);
    std::size_t end = 0;
    for (std::size_t first = 0; first < begins_.size(); ++first) {
        while (end < begins_.size() && begins_[end] - begins_[first] < width) {
            ++end;
        }
        const Place place{.frame = begins_[first] + width / 2,
                          .votes = static_cast<int>(end - first)};
        if (place.votes < parameters_.min_votes) {
            continue;
        }
        // Keep the fullest of overlapping windows.
        if (places_.empty() || place.frame - places_.back().frame >= width) {
            places_.push_back(place);
        } else if (place.votes > places_.back().votes) {
            places_.back() = place;
        }
    }
    const auto max_count = static_cast<std::size_t>(parameters_.max_candidates);
    if (places_.size() > max_count) {
        std::nth_element(places_.begin(), places_.begin() + static_cast<std::ptrdiff_t>(max_count),
                         places_.end(), [](const Place& one, const Place& other) {
                             return one.votes > other.votes;
                         });
        places_.resize(max_count);
    }
}

}  // namespace polymux::song
