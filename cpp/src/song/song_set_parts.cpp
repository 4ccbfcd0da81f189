#include "song/song_set_parts.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "polymux/song/segment.hpp"
#include "song/segment_layout.hpp"

namespace polymux::song {

namespace {

std::vector<std::int64_t> union_of(std::span<const std::int64_t> one,
                                   std::span<const std::int64_t> other) {
    std::vector<std::int64_t> both;
    both.reserve(one.size() + other.size());
    std::set_union(one.begin(), one.end(), other.begin(), other.end(), std::back_inserter(both));
    return both;
}

Result<PartPointer> merge_two(const PartPointer& one, const PartPointer& other,
                              const Parameters& parameters) {
    const PartPointer both[2] = {one, other};
    MemoryTarget target;
    if (auto merged = merge_segments(parameters, inputs_of(both), 0, target); !merged) {
        return std::move(merged.error());
    }
    return part_of_bytes(target.take(), parameters, std::max(one->sequence, other->sequence));
}

Result<std::shared_ptr<SongPart>> open_file(const std::string& folder, std::uint64_t number,
                                            const Parameters& parameters,
                                            MappedFile::Access access) {
    auto file = MappedFile::open(folder + "/" + segment_name(number), access);
    if (!file) return std::move(file.error());
    auto owner = std::make_shared<const MappedFile>(*std::move(file));
    auto segment = Segment::open(owner->bytes(), parameters);
    if (!segment) return std::move(segment.error());
    return std::make_shared<SongPart>(SongPart{.owner = std::move(owner),
                                               .segment = *segment,
                                               .removed = {},
                                               .number = number,
                                               .sequence = 0});
}

}  // namespace

Result<PartPointer> part_of_bytes(std::vector<std::byte> bytes, const Parameters& parameters,
                                  std::int64_t sequence) {
    bytes.shrink_to_fit();
    auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    auto segment = Segment::open(*owner, parameters);
    if (!segment) return std::move(segment.error());
    return std::make_shared<const SongPart>(SongPart{.owner = std::move(owner),
                                                     .segment = *segment,
                                                     .removed = {},
                                                     .number = 0,
                                                     .sequence = sequence});
}

Result<PartPointer> open_part(const std::string& folder, const ManifestSegment& wanted,
                              const Parameters& parameters, MappedFile::Access access) {
    auto part = open_file(folder, wanted.number, parameters, access);
    if (!part) return std::move(part.error());
    if ((*part)->segment.checksum() != wanted.checksum ||
        (*part)->segment.size_bytes() != wanted.size_bytes) {
        return Error{
            .code = ErrorCode::undecodable,
            .message = std::string("a segment of the song index does not match the manifest")
                           .append(rebuild_hint)};
    }
    (*part)->removed = wanted.removed;
    return PartPointer(*std::move(part));
}

Result<PartPointer> open_new_part(const std::string& folder, std::uint64_t number,
                                  const Parameters& parameters) {
    auto part = open_file(folder, number, parameters, MappedFile::Access::random);
    if (!part) return std::move(part.error());
    return PartPointer(*std::move(part));
}

bool is_shortage(const Error& error) noexcept {
    if (error.code == ErrorCode::out_of_memory) return true;
    const int reason = error.os_errno.value_or(0);
    return reason == EMFILE || reason == ENFILE || reason == ENOMEM || reason == EAGAIN;
}

Result<std::optional<std::string>> damage_of(const SongPart& part, const std::string& folder,
                                             const Parameters& parameters) {
    const auto opened =
        open_part(folder, manifest_entry(part), parameters, MappedFile::Access::sequential);
    if (!opened && is_shortage(opened.error())) return opened.error();
    auto whole = opened ? (*opened)->segment.verify() : Result<void>(opened.error());
    if (whole) return std::optional<std::string>();
    // A publish first replaces the manifest and then deletes obsolete files.
    const auto now = load_manifest(folder, parameters);
    if (!now && is_shortage(now.error())) return now.error();
    if (now) {
        const auto is_it = [&part](const ManifestSegment& named) {
            return named.number == part.number && named.checksum == part.segment.checksum();
        };
        const std::vector<ManifestSegment>& named = now->manifest.segments;
        if (std::none_of(named.begin(), named.end(), is_it)) return std::optional<std::string>();
    }
    return std::optional(std::move(whole.error().message));
}

Result<std::vector<PartPointer>> build_parts(std::span<const Track> tracks,
                                             const Parameters& parameters, std::int64_t sequence) {
    std::vector<PartPointer> parts;
    while (!tracks.empty()) {
        std::size_t count = 0;
        std::uint64_t frames = 0;
        for (; count < tracks.size(); ++count) {
            frames += LineOfTime::frames_of(parameters, tracks[count].fingerprint.frames);
            if (count > 0 && !fits(frames)) break;
        }
        auto bytes = build_segment(parameters, tracks.first(count));
        if (!bytes) return std::move(bytes.error());
        auto part = part_of_bytes(*std::move(bytes), parameters, sequence);
        if (!part) return std::move(part.error());
        parts.push_back(*std::move(part));
        tracks = tracks.subspan(count);
    }
    return parts;
}

std::uint64_t kept_frames(const SongPart& part, const Parameters& parameters) {
    std::uint64_t frames = 0;
    for (std::uint32_t index = 0; index < part.segment.track_count(); ++index) {
        const TrackRow row = part.segment.track(index);
        if (!part.is_removed(row.song)) frames += LineOfTime::frames_of(parameters, row.frames);
    }
    return frames;
}

bool fits(std::uint64_t frames) noexcept {
    return frames < 1U << max_frame_bits;
}

PartPointer without(PartPointer part, std::span<const std::int64_t> songs) {
    std::vector<std::int64_t> found;
    for (std::uint32_t index = 0; index < part->segment.track_count(); ++index) {
        const std::int64_t song = part->segment.track(index).song;
        if (std::binary_search(songs.begin(), songs.end(), song)) found.push_back(song);
    }
    if (found.empty()) return part;
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    auto changed = std::make_shared<SongPart>(*part);
    changed->removed = union_of(part->removed, found);
    return changed;
}

Result<void> merge_in_memory(std::vector<PartPointer>& parts, const Parameters& parameters) {
    while (parts.size() >= 2) {
        const PartPointer& later = parts.back();
        const PartPointer& earlier = *(parts.end() - 2);
        if (earlier->number != 0) break;
        const std::uint64_t later_frames = kept_frames(*later, parameters);
        const std::uint64_t earlier_frames = kept_frames(*earlier, parameters);
        if (earlier_frames >= 2 * later_frames || !fits(earlier_frames + later_frames)) break;
        auto merged = merge_two(earlier, later, parameters);
        if (!merged) return std::move(merged.error());
        parts.pop_back();
        parts.back() = *std::move(merged);
    }
    return {};
}

std::vector<MergeInput> inputs_of(std::span<const PartPointer> parts) {
    std::vector<MergeInput> inputs;
    inputs.reserve(parts.size());
    for (const PartPointer& part : parts) {
        inputs.push_back({.segment = &part->segment, .removed = part->removed});
    }
    return inputs;
}

ManifestSegment manifest_entry(const SongPart& part) {
    return {.number = part.number,
            .size_bytes = part.segment.size_bytes(),
            .checksum = part.segment.checksum(),
            .removed = part.removed};
}

}  // namespace polymux::song
