// State of a SongSet, shared by the source files of its methods.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "polymux/result.hpp"
#include "polymux/song/song_set.hpp"
#include "song/manifest.hpp"

namespace polymux::song {

struct SongSet::State {
    /// A removed song that files may still contain, unless they cover that change.
    struct Removal {
        std::int64_t song = 0;
        std::int64_t sequence = 0;
    };

    std::string folder;
    Parameters parameters;

    /// Held while the next snapshot is made; guards the following members.
    std::mutex changing;
    std::vector<Removal> removals;
    bool discards_published = false;  ///< Since `clear`: published data no longer counts.

    /// Held only briefly; guards the following members.
    std::mutex showing;
    std::shared_ptr<const SongSnapshot> current = std::make_shared<const SongSnapshot>();
    std::optional<FileStamp> stamp;  ///< Stamp of the manifest of `current`.

    [[nodiscard]] std::string manifest_path() const {
        return folder + "/" + std::string(manifest_name);
    }
    [[nodiscard]] std::shared_ptr<const SongSnapshot> shown();
    void show(SongSnapshot snapshot);
    void show(SongSnapshot snapshot, const std::optional<FileStamp>& of_manifest);

    /// Whether the manifest differs from that of `current`.
    [[nodiscard]] bool has_news();
    /// The functions below need `changing`. Loads the manifest if it differs. After `clear`, only
    /// if all files that it names are usable.
    Result<bool> load();
    Result<void> publish(std::int64_t covered_sequence);

private:
    [[nodiscard]] Result<SongSnapshot> snapshot_of(const Manifest& manifest);
    void pass_over(const std::optional<FileStamp>& of_manifest);
};

}  // namespace polymux::song
