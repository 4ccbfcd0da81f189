// The searchable index of a music library: segments in files that processes share, and later
// additions in memory. It can always be rebuilt from the library's database, which is the
// authoritative copy.
//
// One process writes at a time, under a lock of the caller; any number of processes read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "polymux/cancel.hpp"
#include "polymux/result.hpp"
#include "polymux/song/parameters.hpp"
#include "polymux/song/segment.hpp"

namespace polymux::song {

/// One segment of a set, and the songs removed from it.
struct SongPart {
    std::shared_ptr<const void> owner;  ///< Owner of the bytes that `segment` shows.
    Segment segment;
    std::vector<std::int64_t> removed;  ///< Removed songs; sorted.
    std::uint64_t number = 0;           ///< Number of its file; 0 for a segment in memory.
    std::int64_t sequence = 0;          ///< Last change of a segment in memory.

    [[nodiscard]] bool is_removed(std::int64_t song) const noexcept;
};

/// A file of the index that could not be used.
struct DamagedPart {
    std::string name;    ///< Name in the set's folder.
    std::string reason;  ///< Readable reason.
};

/// An immutable view of a set at one moment. It keeps the data that it shows alive.
struct SongSnapshot {
    std::vector<std::shared_ptr<const SongPart>> parts;
    std::uint64_t generation = 0;  ///< Incremented by each `publish`; 0 before the first.
    /// The last database change that the files contain, 0 if they may lack any.
    std::int64_t covered_sequence = 0;
    std::vector<DamagedPart> damaged;

    /// All songs that can be found, without duplicates, sorted.
    [[nodiscard]] std::vector<std::int64_t> songs() const;
    /// Size of the segments that are only in memory.
    [[nodiscard]] std::size_t memory_bytes() const noexcept;
};

/// Thread-safe: a search takes a snapshot and never waits for a writer.
///
/// Each change has a number, the `sequence` of the caller's database, which only increases. After
/// `open`, and after a `refresh` that found something, the caller repeats the additions and
/// removals of its database after `covered_sequence`. If `damaged` is not empty, `covered_sequence`
/// is 0. The set then uses the remaining files until a process with write access rebuilds it
/// through another set:
///
///     auto rebuilt = SongSet::open(folder, parameters);
///     (*rebuilt)->clear();
///     (*rebuilt)->add(all_tracks_of_the_database, sequence);
///     (*rebuilt)->publish(sequence);
///     set.refresh();
class SongSet {
public:
    /// Opens a set. `folder` need not exist before the first `publish`. Skips files that are
    /// missing, damaged, or of another version or other parameters, and names them in `damaged`.
    /// Errors: `input_unreadable` if the manifest exists but cannot be read, or if files cannot be
    /// opened for lack of a resource such as open file descriptors, which is not damage.
    static Result<std::unique_ptr<SongSet>> open(std::string folder, const Parameters& parameters);
    ~SongSet();
    SongSet(const SongSet&) = delete;
    SongSet& operator=(const SongSet&) = delete;

    [[nodiscard]] std::shared_ptr<const SongSnapshot> snapshot() const;

    /// Loads what another process has published. Returns true if anything was new. Costs one
    /// stat(2) if nothing changed. Changes in memory that the files do not cover yet are kept. If
    /// another thread is changing this set, the next call checks again. A set that was cleared and
    /// not published loads only undamaged files. Errors: as in `open`; the set then stays
    /// unchanged.
    Result<bool> refresh();

    /// Adds tracks, in memory, that can be found from now on. Pass all tracks of a song in one
    /// call. Tracks that the song already has stay: call `remove` first. Errors: as in
    /// `build_segment`; nothing is added then.
    Result<void> add(std::span<const Track> tracks, std::int64_t sequence);

    /// Removes all current tracks of these songs.
    Result<void> remove(std::span<const std::int64_t> songs, std::int64_t sequence);

    /// Removes everything. The files stay until the next `publish`, which starts from scratch, or
    /// until a `refresh` finds that another process has repaired them.
    void clear();

    /// Writes the segments in memory to files, merges those of similar size, and replaces the
    /// manifest atomically, even if interrupted. Then deletes obsolete files; other processes keep
    /// those that they have mapped. Skips files that turn out to be damaged; see `damaged`. Errors:
    /// `output_failed`; the set then stays unchanged.
    Result<void> publish(std::int64_t covered_sequence);

    /// Reads all files and compares their checksums; skips damaged ones from now on. Returns the
    /// new value of `damaged`. Errors: if a file cannot be opened for lack of a resource, and
    /// `cancelled` before the next file once the token is set. The set then stays unchanged.
    Result<std::vector<DamagedPart>> verify(const CancelToken& token = {});

private:
    struct State;
    explicit SongSet(std::unique_ptr<State> state);

    std::unique_ptr<State> state_;
};

}  // namespace polymux::song
