#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "polymux/song/peaks.hpp"
#include "polymux/song/query.hpp"

namespace polymux::song {

namespace {

static_assert(std::endian::native == std::endian::little, "queries are little-endian");

constexpr std::uint32_t magic = 0x51'58'4D'50;  // "PMXQ"
constexpr std::uint32_t version = 1;
/// `Parameters::max_query_s` with a margin, and at most the gap between two songs of the index.
constexpr std::uint32_t max_frames = 2'000;
/// Twice the maximum for that many seconds.
constexpr std::uint32_t max_peaks = 16'000;
constexpr float max_prominence = 200.0F;

struct Head {
    std::uint32_t magic = 0;
    std::uint32_t version = 0;
    std::uint64_t parameters = 0;
    std::uint32_t frames = 0;
    std::uint32_t counts[3] = {};
};
static_assert(sizeof(Head) == 32);

Error invalid_query(const char* what) {
    return {.code = ErrorCode::invalid_argument,
            .message = std::string("the song query ") + what + ". Create it with song_query"};
}

bool is_sound(const QueryPeak& peak, std::uint32_t frames) {
    return std::isfinite(peak.frame) && std::isfinite(peak.frequency) &&
           std::abs(peak.prominence) <= max_prominence && peak.frame >= 0.0F &&
           peak.frame <= static_cast<float>(frames) && peak.frequency >= 0.0F &&
           peak.frequency <= static_cast<float>(frequency_mask);
}

}  // namespace

std::vector<std::byte> to_bytes(const Query& query, const Parameters& parameters) {
    const std::vector<QueryPeak>* const lists[] = {&query.peaks, &query.dense[0], &query.dense[1]};
    Head head{.magic = magic,
              .version = version,
              .parameters = parameters.hash(),
              .frames = query.frames};
    std::size_t size = sizeof(Head);
    for (std::size_t index = 0; index < 3; ++index) {
        head.counts[index] = static_cast<std::uint32_t>(lists[index]->size());
        size += lists[index]->size() * sizeof(QueryPeak);
    }
    std::vector<std::byte> bytes(size);
    std::memcpy(bytes.data(), &head, sizeof(Head));
    std::byte* to = bytes.data() + sizeof(Head);
    for (const std::vector<QueryPeak>* list : lists) {
        if (!list->empty()) {
            std::memcpy(to, list->data(), list->size() * sizeof(QueryPeak));
        }
        to += list->size() * sizeof(QueryPeak);
    }
    return bytes;
}

Result<Query> query_of(std::span<const std::byte> bytes, const Parameters& parameters) {
    Head head;
    if (bytes.size() < sizeof(Head)) {
        return invalid_query("is truncated");
    }
    std::memcpy(&head, bytes.data(), sizeof(Head));
    if (head.magic != magic || head.version != version) {
        return invalid_query("is invalid, or was made by another version of polymux");
    }
    if (head.parameters != parameters.hash()) {
        return invalid_query("was made with other parameters");
    }
    if (head.frames > max_frames ||
        std::max({head.counts[0], head.counts[1], head.counts[2]}) > max_peaks) {
        return invalid_query("is too long");
    }
    Query query;
    query.frames = head.frames;
    std::vector<QueryPeak>* const lists[] = {&query.peaks, &query.dense[0], &query.dense[1]};
    std::span<const std::byte> rest = bytes.subspan(sizeof(Head));
    for (std::size_t index = 0; index < 3; ++index) {
        const std::size_t size = head.counts[index] * sizeof(QueryPeak);
        if (rest.size() < size) {
            return invalid_query("is truncated");
        }
        lists[index]->resize(head.counts[index]);
        if (size != 0) {
            std::memcpy(lists[index]->data(), rest.data(), size);
        }
        rest = rest.subspan(size);
        const auto sound = [&head](const QueryPeak& peak) { return is_sound(peak, head.frames); };
        if (!std::all_of(lists[index]->begin(), lists[index]->end(), sound)) {
            return invalid_query("has an invalid peak");
        }
        if (!std::ranges::is_sorted(*lists[index], {}, &QueryPeak::frame)) {
            return invalid_query("has peaks that are not ordered by time");
        }
    }
    if (!rest.empty()) {
        return invalid_query("is longer than declared");
    }
    return query;
}

}  // namespace polymux::song
