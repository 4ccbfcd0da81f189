#include "polymux/song/song_set.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "song/song_set_parts.hpp"
#include "song/song_set_state.hpp"

namespace polymux::song {

namespace {

/// Attempts to read a manifest whose files are deleted before they can be opened.
constexpr int load_attempts = 10;

Error out_of_memory() {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory for the song index"};
}

void sort_unique(std::vector<std::int64_t>& songs) {
    std::sort(songs.begin(), songs.end());
    songs.erase(std::unique(songs.begin(), songs.end()), songs.end());
}

/// The set continues with its current data and reports it as incomplete.
SongSnapshot with_damaged_manifest(SongSnapshot snapshot, std::string reason) {
    snapshot.covered_sequence = 0;
    snapshot.damaged = {{.name = std::string(manifest_name), .reason = std::move(reason)}};
    return snapshot;
}

}  // namespace

bool SongPart::is_removed(std::int64_t song) const noexcept {
    return std::binary_search(removed.begin(), removed.end(), song);
}

std::vector<std::int64_t> SongSnapshot::songs() const {
    std::vector<std::int64_t> songs;
    for (const PartPointer& part : parts) {
        for (std::uint32_t index = 0; index < part->segment.track_count(); ++index) {
            const std::int64_t song = part->segment.track(index).song;
            if (!part->is_removed(song)) songs.push_back(song);
        }
    }
    sort_unique(songs);
    return songs;
}

std::size_t SongSnapshot::memory_bytes() const noexcept {
    std::size_t bytes = 0;
    for (const PartPointer& part : parts) {
        if (part->number == 0) bytes += part->segment.size_bytes();
    }
    return bytes;
}

std::shared_ptr<const SongSnapshot> SongSet::State::shown() {
    const std::lock_guard lock(showing);
    return current;
}

void SongSet::State::show(SongSnapshot snapshot) {
    auto next = std::make_shared<const SongSnapshot>(std::move(snapshot));
    const std::lock_guard lock(showing);
    // Release the old snapshot outside of the lock, because this may unmap files.
    current.swap(next);
}

void SongSet::State::show(SongSnapshot snapshot, const std::optional<FileStamp>& of_manifest) {
    show(std::move(snapshot));
    const std::lock_guard lock(showing);
    stamp = of_manifest;
}

bool SongSet::State::has_news() {
    const auto now = stamp_of(manifest_path());
    const std::lock_guard lock(showing);
    return now != stamp;
}

void SongSet::State::pass_over(const std::optional<FileStamp>& of_manifest) {
    const std::lock_guard lock(showing);
    stamp = of_manifest;
}

Result<SongSnapshot> SongSet::State::snapshot_of(const Manifest& manifest) {
    const std::shared_ptr<const SongSnapshot> before = shown();
    SongSnapshot next{.parts = {},
                      .generation = manifest.generation,
                      .covered_sequence = manifest.covered_sequence,
                      .damaged = {}};
    std::vector<std::int64_t> removed;
    for (const Removal& removal : removals) {
        if (removal.sequence > manifest.covered_sequence) removed.push_back(removal.song);
    }
    sort_unique(removed);
    for (const ManifestSegment& wanted : manifest.segments) {
        const auto same = std::find_if(
            before->parts.begin(), before->parts.end(), [&wanted](const PartPointer& part) {
                return part->number == wanted.number && part->segment.checksum() == wanted.checksum;
            });
        if (same != before->parts.end()) {
            auto part = std::make_shared<SongPart>(**same);
            part->removed = wanted.removed;
            next.parts.push_back(without(std::move(part), removed));
            continue;
        }
        auto part = open_part(folder, wanted, parameters, MappedFile::Access::random);
        if (part) {
            next.parts.push_back(without(*std::move(part), removed));
        } else if (is_shortage(part.error())) {
            return std::move(part.error());
        } else {
            next.damaged.push_back(
                {.name = segment_name(wanted.number), .reason = std::move(part.error().message)});
        }
    }
    // A part in memory that is covered except for its last songs: the files now have the others.
    const std::vector<std::int64_t> in_files = next.songs();
    for (const PartPointer& part : before->parts) {
        if (part->number == 0 && part->sequence > manifest.covered_sequence) {
            next.parts.push_back(without(part, in_files));
        }
    }
    if (!next.damaged.empty()) next.covered_sequence = 0;
    return next;
}

Result<bool> SongSet::State::load() {
    for (int attempt = 1;; ++attempt) {
        const auto now = stamp_of(manifest_path());
        if (!has_news()) return false;
        auto loaded = load_manifest(folder, parameters);
        if (!loaded) {
            const ErrorCode code = loaded.error().code;
            if (code != ErrorCode::undecodable && code != ErrorCode::input_not_found) {
                return std::move(loaded.error());
            }
            if (discards_published) {
                pass_over(now);
                return false;
            }
            show(with_damaged_manifest(*shown(), std::move(loaded.error().message)), now);
            return true;
        }
        auto next = snapshot_of(loaded->manifest);
        if (!next) return std::move(next.error());
        // A writer may have published again and deleted files of the last manifest.
        const bool overtaken = stamp_of(manifest_path()) != loaded->stamp;
        if (!next->damaged.empty() && overtaken && attempt < load_attempts) continue;
        if (discards_published && !next->damaged.empty()) {
            pass_over(loaded->stamp);
            return false;
        }
        const std::int64_t covered = loaded->manifest.covered_sequence;
        std::erase_if(removals,
                      [covered](const Removal& removal) { return removal.sequence <= covered; });
        discards_published = false;
        show(*std::move(next), loaded->stamp);
        return true;
    }
}

SongSet::SongSet(std::unique_ptr<State> state) : state_(std::move(state)) {}

SongSet::~SongSet() = default;

Result<std::unique_ptr<SongSet>> SongSet::open(std::string folder, const Parameters& parameters) {
    try {
        auto state = std::make_unique<State>();
        state->folder = std::move(folder);
        state->parameters = parameters;
        if (auto loaded = state->load(); !loaded) return std::move(loaded.error());
        return std::unique_ptr<SongSet>(new SongSet(std::move(state)));
    } catch (const std::bad_alloc&) {
        return out_of_memory();
    }
}

std::shared_ptr<const SongSnapshot> SongSet::snapshot() const {
    return state_->shown();
}

Result<bool> SongSet::refresh() {
    try {
        if (!state_->has_news()) return false;
        const std::unique_lock changing(state_->changing, std::try_to_lock);
        if (!changing.owns_lock()) return false;
        return state_->load();
    } catch (const std::bad_alloc&) {
        return out_of_memory();
    }
}

Result<void> SongSet::add(std::span<const Track> tracks, std::int64_t sequence) {
    try {
        auto parts = build_parts(tracks, state_->parameters, sequence);
        if (!parts) return std::move(parts.error());
        const std::lock_guard changing(state_->changing);
        SongSnapshot next = *state_->shown();
        for (PartPointer& part : *parts) {
            next.parts.push_back(std::move(part));
            if (auto merged = merge_in_memory(next.parts, state_->parameters); !merged) {
                return merged;
            }
        }
        state_->show(std::move(next));
        return {};
    } catch (const std::bad_alloc&) {
        return out_of_memory();
    }
}

Result<void> SongSet::remove(std::span<const std::int64_t> songs, std::int64_t sequence) {
    try {
        std::vector<std::int64_t> sorted(songs.begin(), songs.end());
        sort_unique(sorted);
        const std::lock_guard changing(state_->changing);
        SongSnapshot next = *state_->shown();
        for (PartPointer& part : next.parts) part = without(std::move(part), sorted);
        for (const std::int64_t song : sorted) {
            state_->removals.push_back({.song = song, .sequence = sequence});
        }
        state_->show(std::move(next));
        return {};
    } catch (const std::bad_alloc&) {
        return out_of_memory();
    }
}

void SongSet::clear() {
    const std::lock_guard changing(state_->changing);
    const std::uint64_t generation = state_->shown()->generation;
    state_->removals.clear();
    state_->discards_published = true;
    state_->show({.parts = {}, .generation = generation, .covered_sequence = 0, .damaged = {}});
}

Result<void> SongSet::publish(std::int64_t covered_sequence) {
    try {
        const std::lock_guard changing(state_->changing);
        return state_->publish(covered_sequence);
    } catch (const std::bad_alloc&) {
        return out_of_memory();
    }
}

Result<std::vector<DamagedPart>> SongSet::verify(const CancelToken& token) {
    // Reading takes long, so do it without the lock.
    std::vector<DamagedPart> found;
    std::vector<std::uint64_t> numbers;
    for (const PartPointer& part : state_->shown()->parts) {
        if (part->number == 0) continue;
        if (token.cancelled()) {
            return Error{.code = ErrorCode::cancelled,
                         .message = "the verification of the song index was canceled"};
        }
        auto wrong = damage_of(*part, state_->folder, state_->parameters);
        if (!wrong) return std::move(wrong.error());
        if (!wrong->has_value()) continue;
        found.push_back({.name = segment_name(part->number), .reason = std::move(**wrong)});
        numbers.push_back(part->number);
    }
    const std::lock_guard changing(state_->changing);
    SongSnapshot next = *state_->shown();
    for (std::size_t index = 0; index < found.size(); ++index) {
        // A part merged in the meantime no longer exists, and neither does its file.
        const auto is_it = [number = numbers[index]](const PartPointer& part) {
            return part->number == number;
        };
        if (std::erase_if(next.parts, is_it) == 0) continue;
        next.damaged.push_back(std::move(found[index]));
        next.covered_sequence = 0;
    }
    std::vector<DamagedPart> damaged = next.damaged;
    state_->show(std::move(next));
    return damaged;
}

}  // namespace polymux::song
