// Publishes: writes new files, then the manifest that names them, then deletes obsolete files.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "path_text.hpp"
#include "song/song_set_parts.hpp"
#include "song/song_set_state.hpp"

namespace polymux::song {

namespace {

/// A file with a larger share of removed songs is rewritten.
constexpr double max_removed_share = 0.3;

struct Sized {
    PartPointer part;
    std::uint64_t kept_frames = 0;
    bool is_worn = false;  ///< Has too many removed songs.
};

struct Plan {
    std::vector<PartPointer> merged;  ///< Files first, then parts in memory.
    std::vector<PartPointer> kept;    ///< Files that stay unchanged.
};

Sized sized(const PartPointer& part, const Parameters& parameters) {
    const std::uint64_t kept = kept_frames(*part, parameters);
    const auto all = static_cast<double>(part->segment.frames());
    const bool is_worn = !part->removed.empty() &&
                         (kept == 0 || static_cast<double>(kept) < all * (1 - max_removed_share));
    return {.part = part, .kept_frames = kept, .is_worn = is_worn};
}

/// Parts in memory and worn files are rewritten, together with files that are at most twice as long
/// as the total so far. A song is therefore written only a few times while its library grows a
/// thousandfold, and the number of files stays small.
Plan plan_of(std::span<const PartPointer> parts, const Parameters& parameters) {
    std::vector<Sized> files;
    Plan plan;
    std::vector<PartPointer> in_memory;
    std::uint64_t frames = 0;
    for (const PartPointer& part : parts) {
        Sized one = sized(part, parameters);
        if (part->number == 0) {
            in_memory.push_back(part);
            frames += one.kept_frames;
        } else if (one.is_worn) {
            plan.merged.push_back(part);
            frames += one.kept_frames;
        } else {
            files.push_back(std::move(one));
        }
    }
    std::sort(files.begin(), files.end(), [](const Sized& one, const Sized& other) {
        return one.kept_frames < other.kept_frames;
    });
    for (Sized& file : files) {
        const bool similar = file.kept_frames <= 2 * frames && fits(frames + file.kept_frames);
        if (similar) frames += file.kept_frames;
        (similar ? plan.merged : plan.kept).push_back(std::move(file.part));
    }
    plan.merged.insert(plan.merged.end(), in_memory.begin(), in_memory.end());
    return plan;
}

/// One more than any number used in this folder.
Result<std::uint64_t> next_number(const std::string& folder, std::span<const PartPointer> parts) {
    const auto names = names_in(folder);
    if (!names) return names.error();
    std::uint64_t last = 0;
    for (const std::string& name : *names) last = std::max(last, segment_number(name).value_or(0));
    for (const PartPointer& part : parts) last = std::max(last, part->number);
    return last + 1;
}

Result<void> make_folder(const std::string& folder) {
    constexpr mode_t mode = 0755;
    if (::mkdir(folder.c_str(), mode) == 0 || errno == EEXIST) return {};
    return Error{.code = ErrorCode::output_failed,
                 .message = "cannot create directory " + quoted_path(folder) + ": " +
                            std::generic_category().message(errno),
                 .input_name = folder,
                 .os_errno = errno};
}

/// Deletes unused files with names of the index. A file that cannot be deleted stays until the next
/// time.
void delete_strays(const std::string& folder, std::span<const PartPointer> parts) {
    const auto names = names_in(folder);
    if (!names) return;
    for (const std::string& name : *names) {
        std::string_view bare = name;
        const bool unfinished = bare.ends_with(unfinished_ending);
        if (unfinished) bare.remove_suffix(unfinished_ending.size());
        const auto number = segment_number(bare);
        const auto is_it = [&number](const PartPointer& part) { return part->number == number; };
        const bool used =
            !unfinished && (!number || std::any_of(parts.begin(), parts.end(), is_it));
        if (used || (!number && bare != manifest_name)) continue;
        ::unlink((folder + "/" + name).c_str());
    }
}

class Publication {
public:
    Publication(const std::string& folder, const Parameters& parameters, std::uint64_t generation)
        : folder_(folder), parameters_(parameters), generation_(generation) {}

    /// Opens the files among `parts` again, to read them sequentially. Returns the damaged ones.
    /// Errors: `is_shortage`.
    Result<std::vector<DamagedPart>> open_inputs(std::span<const PartPointer> parts) {
        std::vector<DamagedPart> damaged;
        inputs_.clear();
        for (const PartPointer& part : parts) {
            if (part->number == 0) {
                inputs_.push_back(part);
                continue;
            }
            auto opened = open_part(folder_, manifest_entry(*part), parameters_,
                                    MappedFile::Access::sequential);
            if (!opened && is_shortage(opened.error())) return opened.error();
            Result<void> whole = opened ? (*opened)->segment.verify() : opened.error();
            if (whole) {
                inputs_.push_back(*std::move(opened));
            } else {
                damaged.push_back({.name = segment_name(part->number),
                                   .reason = std::move(whole.error().message)});
            }
        }
        return damaged;
    }

    /// Merges the inputs into as few files as the timeline limit allows.
    Result<std::vector<PartPointer>> write_files(std::uint64_t first_number) {
        std::vector<PartPointer> written;
        for (auto rest = std::span(std::as_const(inputs_)); !rest.empty();) {
            std::size_t count = 0;
            std::uint64_t frames = 0;
            for (; count < rest.size(); ++count) {
                const std::uint64_t more = kept_frames(*rest[count], parameters_);
                if (count > 0 && !fits(frames + more)) break;
                frames += more;
            }
            if (frames > 0) {
                auto part = write_file(rest.first(count), first_number + written.size());
                if (!part) return std::move(part.error());
                written.push_back(*std::move(part));
            }
            rest = rest.subspan(count);
        }
        return written;
    }

private:
    Result<PartPointer> write_file(std::span<const PartPointer> parts, std::uint64_t number) {
        auto file = AtomicFile::create(folder_, segment_name(number));
        if (!file) return std::move(file.error());
        if (auto merged = merge_segments(parameters_, inputs_of(parts), generation_, **file);
            !merged) {
            return std::move(merged.error());
        }
        if (auto kept = (*file)->commit(); !kept) return std::move(kept.error());
        return open_new_part(folder_, number, parameters_);
    }

    const std::string& folder_;
    const Parameters& parameters_;
    std::uint64_t generation_;
    std::vector<PartPointer> inputs_;
};

Manifest manifest_of(const SongSnapshot& snapshot) {
    Manifest manifest{.generation = snapshot.generation,
                      .covered_sequence = snapshot.covered_sequence,
                      .segments = {}};
    for (const PartPointer& part : snapshot.parts) {
        manifest.segments.push_back(manifest_entry(*part));
    }
    return manifest;
}

}  // namespace

Result<void> SongSet::State::publish(std::int64_t covered_sequence) {
    if (auto made = make_folder(folder); !made) return made;
    if (!discards_published) {
        if (auto loaded = load(); !loaded) return std::move(loaded.error());
    }
    const std::shared_ptr<const SongSnapshot> before = shown();
    SongSnapshot next{.parts = before->parts,
                      .generation = before->generation + 1,
                      .covered_sequence = 0,
                      .damaged = before->damaged};
    Publication publication(folder, parameters, next.generation);
    Plan plan;
    for (;;) {
        plan = plan_of(next.parts, parameters);
        const auto damaged = publication.open_inputs(plan.merged);
        if (!damaged) return damaged.error();
        if (damaged->empty()) break;
        for (const DamagedPart& one : *damaged) {
            std::erase_if(next.parts, [&one](const PartPointer& part) {
                return part->number != 0 && segment_name(part->number) == one.name;
            });
            next.damaged.push_back(one);
        }
    }
    const auto number = next_number(folder, before->parts);
    if (!number) return number.error();
    auto written = publication.write_files(*number);
    if (!written) return std::move(written.error());
    next.parts = std::move(plan.kept);
    next.parts.insert(next.parts.end(), written->begin(), written->end());
    if (next.damaged.empty()) next.covered_sequence = covered_sequence;
    if (auto replaced = replace_manifest(folder, manifest_of(next), parameters); !replaced) {
        return replaced;
    }
    removals.clear();
    discards_published = false;
    delete_strays(folder, next.parts);
    show(std::move(next), stamp_of(manifest_path()));
    return {};
}

}  // namespace polymux::song
