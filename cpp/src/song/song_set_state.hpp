// What a SongSet holds, for the files that its methods are in.
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
    /// A song that went away and that files may still have, unless they cover that change.
    struct Removal {
        std::int64_t song = 0;
        std::int64_t sequence = 0;
    };

    std::string folder;
    Parameters parameters;

    /// Held by whoever makes the next snapshot; guards what follows.
    std::mutex changing;
    std::vector<Removal> removals;
    bool discards_published = false;  ///< Since `clear`: what is published counts no more.

    /// Held for a moment only; guards what follows.
    std::mutex showing;
    std::shared_ptr<const SongSnapshot> current = std::make_shared<const SongSnapshot>();
    std::optional<FileStamp> stamp;  ///< Of the manifest that `current` has.

    [[nodiscard]] std::string manifest_path() const {
        return folder + "/" + std::string(manifest_name);
    }
    [[nodiscard]] std::shared_ptr<const SongSnapshot> shown();
    void show(SongSnapshot snapshot);
    void show(SongSnapshot snapshot, const std::optional<FileStamp>& of_manifest);

    /// Whether the manifest is another one than that of `current`.
    [[nodiscard]] bool has_news();
    /// The rest needs `changing`. Loads the manifest where it is another one; while this set
    /// begins anew, only where all that it names can be used.
    Result<bool> load();
    Result<void> publish(std::int64_t covered_sequence);

private:
    [[nodiscard]] Result<SongSnapshot> snapshot_of(const Manifest& manifest);
    void pass_over(const std::optional<FileStamp>& of_manifest);
};

}  // namespace polymux::song
