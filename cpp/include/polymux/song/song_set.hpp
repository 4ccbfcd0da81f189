// The searchable whole of a catalogue: segments in files that processes share, and in memory what
// was added since. It can always be made again from the catalogue's database, which alone is the
// truth.
//
// One process writes at a time, under a lock that is the caller's; any number read.
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

/// One segment of a set, and what counts no more in it.
struct SongPart {
    std::shared_ptr<const void> owner;  ///< Of the bytes that `segment` shows.
    Segment segment;
    std::vector<std::int64_t> removed;  ///< Songs; sorted.
    std::uint64_t number = 0;           ///< Of its file; 0 for one in memory.
    std::int64_t sequence = 0;          ///< Of what is in memory: the last change's.

    [[nodiscard]] bool is_removed(std::int64_t song) const noexcept;
};

/// A file of the index that could not be used.
struct DamagedPart {
    std::string name;    ///< In the set's folder.
    std::string reason;  ///< For a person.
};

/// A set as it was at one moment. It stays that way, and keeps what it shows alive.
struct SongSnapshot {
    std::vector<std::shared_ptr<const SongPart>> parts;
    std::uint64_t generation = 0;  ///< Goes up by each `publish`; 0 before the first.
    /// The last change of the database that the files have, 0 where they may lack any.
    std::int64_t covered_sequence = 0;
    std::vector<DamagedPart> damaged;

    /// Every song that can be found, each once, sorted.
    [[nodiscard]] std::vector<std::int64_t> songs() const;
    /// Of what is only in memory.
    [[nodiscard]] std::size_t memory_bytes() const noexcept;
};

/// Thread-safe: whoever searches takes a snapshot, and is kept waiting by nobody.
///
/// Each change has a number, the `sequence` of the caller's database, which only goes up. After
/// `open`, and after a `refresh` that found something, the caller adds and removes again what its
/// database has past `covered_sequence`. Where `damaged` is not empty, `covered_sequence` is 0: the
/// set goes on with what is left, until somebody who may write makes it anew with another set:
///
///     auto anew = SongSet::open(folder, parameters);
///     (*anew)->clear();
///     (*anew)->add(all_tracks_of_the_database, sequence);
///     (*anew)->publish(sequence);
///     set.refresh();
class SongSet {
public:
    /// `folder` need not exist before the first `publish`. Files that are missing, damaged, or of
    /// another version or other parameters are left out and named in `damaged`. Errors:
    /// `input_unreadable` where the manifest is there and may not be read, or where files cannot be
    /// opened for want of something, such as of files that may be open: that is no damage.
    static Result<std::unique_ptr<SongSet>> open(std::string folder, const Parameters& parameters);
    ~SongSet();
    SongSet(const SongSet&) = delete;
    SongSet& operator=(const SongSet&) = delete;

    [[nodiscard]] std::shared_ptr<const SongSnapshot> snapshot() const;

    /// Takes over what another process has published; true where there was something. Costs one
    /// stat(2) where there is nothing. Of what is in memory, that stays which is not covered yet.
    /// While another thread changes this set it looks again at the next call. A set that was
    /// cleared and not published takes over what is whole only. Errors: as of `open`; the set then
    /// stays as it is.
    Result<bool> refresh();

    /// Tracks that can be found from now on, in memory; all of a song's in one call. A song that
    /// was there before stays there too: `remove` it first. Errors: as of `build_segment`; nothing
    /// is added then.
    Result<void> add(std::span<const Track> tracks, std::int64_t sequence);

    /// All tracks that these songs have now.
    Result<void> remove(std::span<const std::int64_t> songs, std::int64_t sequence);

    /// Leaves nothing. The files stay until the next `publish`, which begins anew, or until a
    /// `refresh` finds that another process has made them whole.
    void clear();

    /// Writes what is in memory into files, merges those of similar size, and replaces the
    /// manifest; all or nothing, whenever it is cut off. Then deletes files that count no more;
    /// other processes keep those that they have mapped. Files that turn out to be damaged are left
    /// out; see `damaged`. Errors: `output_failed`; the set then stays as it is.
    Result<void> publish(std::int64_t covered_sequence);

    /// Reads all files and compares their checksums; those that are damaged are left out from now
    /// on. Gives what `damaged` has then. Errors: where a file cannot be opened for want of
    /// something, and `cancelled` before the next file once the token is set; the set then stays
    /// as it is.
    Result<std::vector<DamagedPart>> verify(const CancelToken& token = {});

private:
    struct State;
    explicit SongSet(std::unique_ptr<State> state);

    std::unique_ptr<State> state_;
};

}  // namespace polymux::song
