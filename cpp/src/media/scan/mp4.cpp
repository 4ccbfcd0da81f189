// Edit lists and tags of MP4 and QuickTime, in whatever atom libavformat accepts them.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "media/scan/head_scan.hpp"

namespace polymux::media {

namespace {

constexpr int max_depth = 10;  // As in libavformat.
// Compressed headers of old QuickTime files are not decompressed here.
constexpr std::uint64_t max_compressed_header_bytes = 256 * 1024;
// libavformat cannot return to earlier samples if the input is not seekable.
constexpr std::uint64_t max_unseekable_bytes = 1024 * 1024;

constexpr std::array<std::string_view, 16> containers = {
    "moov", "trak", "edts", "mdia", "minf", "stbl", "dinf", "tref",
    "moof", "traf", "mvex", "udta", "clip", "hoov", "wave", "cmov"};

struct Atom {
    std::string type;
    std::uint64_t content = 0;
    std::uint64_t end = 0;
};

class Mp4Scan {
public:
    explicit Mp4Scan(HeadScan& scan) : scan_(scan) {}

    void scan_file(std::uint64_t offset) {
        bool has_index = false;
        while (const std::optional<Atom> atom = next(offset, UINT64_MAX)) {
            has_index |= atom->type == "moov";
            if (atom->type == "mdat" && !scan_.seekable()) {
                if (has_index) return;
                check_order(*atom);
            }
            scan_atom(*atom, 1);
            offset = atom->end;
        }
    }

private:
    /// The atom at `offset`, cut at the end of its parent.
    std::optional<Atom> next(std::uint64_t offset, std::uint64_t parent_end) {
        constexpr std::uint64_t header_bytes = 8;
        if (offset >= parent_end || parent_end - offset < header_bytes) return std::nullopt;
        std::optional<std::uint64_t> size = scan_.big_endian(offset, 4);
        const auto type = scan_.bytes(offset + 4, 4);
        if (!size || type.empty()) return std::nullopt;
        Atom atom{.type = {type.begin(), type.end()}, .content = offset + header_bytes, .end = 0};
        if (*size == 1) {
            size = scan_.big_endian(offset + header_bytes, 8);
            atom.content += 8;
        } else if (*size == 0) {
            size = parent_end - offset;
        }
        if (!size || *size < atom.content - offset) return std::nullopt;
        atom.end = *size < parent_end - offset ? offset + *size : parent_end;
        return atom;
    }

    void scan_children(std::uint64_t offset, std::uint64_t end, int depth) {
        if (depth > max_depth) return;
        while (const std::optional<Atom> child = next(offset, end)) {
            scan_atom(*child, depth);
            offset = child->end;
        }
    }

    void scan_atom(const Atom& atom, int depth) {
        if (atom.type == "trak") {
            track_ = {};
            scan_children(atom.content, atom.end, depth + 1);
            finish_track();
        } else if (atom.type == "elst") {
            scan_edits(atom);
        } else if (atom.type == "mvhd" || atom.type == "mdhd") {
            const bool is_long = scan_.big_endian(atom.content, 1).value_or(0) == 1;
            auto& clock_hz = atom.type == "mvhd" ? movie_hz_ : track_.media_hz;
            clock_hz = scan_.big_endian(atom.content + (is_long ? 20 : 12), 4).value_or(0);
        } else if (atom.type == "stsz" || atom.type == "stz2") {
            track_.samples = scan_.big_endian(atom.content + 8, 4).value_or(0);
        } else if (atom.type == "stts") {
            track_.durations = atom;
        } else if (atom.type == "udta" || atom.type == "ilst") {
            scan_tags(atom, depth);
        } else if (atom.type == "keys") {
            const std::uint64_t count = scan_.big_endian(atom.content + 4, 4).value_or(0);
            scan_keys(atom, count);
        } else if (atom.type == "meta") {
            // QuickTime's has no version and flags before its children.
            const bool is_full = !scan_.has_text(atom.content + 4, "hdlr");
            scan_children(atom.content + (is_full ? 4 : 0), atom.end, depth + 1);
        } else if (atom.type == "cmvd") {
            check_compressed(scan_.big_endian(atom.content, 4).value_or(0));
        } else if (is_container(atom)) {
            scan_children(atom.content, atom.end, depth + 1);
        }
    }

    bool is_container(const Atom& atom) {
        // libavformat finds an index here if there is no other.
        if (atom.type == "free") {
            return scan_.has_text(atom.content + 4, "mvhd") ||
                   scan_.has_text(atom.content + 4, "cmov");
        }
        return std::ranges::find(containers, atom.type) != containers.end();
    }

    /// Every child is a tag. Only custom tags can have long names.
    void scan_tags(const Atom& atom, int depth) {
        std::uint64_t offset = atom.content;
        while (const std::optional<Atom> child = next(offset, atom.end)) {
            scan_.add_tag(child->type == "----" ? custom_name_bytes(*child) : child->type.size());
            if (depth < max_depth) scan_atom(*child, depth + 1);
            offset = child->end;
        }
    }

    std::uint64_t custom_name_bytes(const Atom& atom) {
        std::uint64_t bytes = 0;
        std::uint64_t offset = atom.content;
        while (const std::optional<Atom> child = next(offset, atom.end)) {
            if (child->type != "data") bytes += child->end - child->content;
            offset = child->end;
        }
        return bytes;
    }

    void scan_keys(const Atom& atom, std::uint64_t count) {
        constexpr std::uint64_t header_bytes = 8;
        std::uint64_t offset = atom.content + header_bytes;
        for (; count > 0 && !scan_.stopped(); --count) {
            const std::optional<Atom> key = next(offset, atom.end);
            if (!key) return;
            scan_.add_name(key->end - key->content);
            offset = key->end;
        }
    }

    void scan_edits(const Atom& atom) {
        const bool is_long = scan_.big_endian(atom.content, 1).value_or(0) == 1;
        const std::uint64_t entry_bytes = is_long ? 20 : 12;
        const std::size_t field_bytes = is_long ? 8 : 4;
        std::uint64_t offset = atom.content + 8;
        const std::uint64_t count = std::min(scan_.big_endian(atom.content + 4, 4).value_or(0),
                                             (atom.end - std::min(offset, atom.end)) / entry_bytes);
        scan_.add_edits(count);
        track_.edits = count;
        track_.edited = 0;
        for (std::uint64_t number = 0; number < count && !scan_.stopped(); ++number) {
            track_.edited += static_cast<double>(scan_.big_endian(offset, field_bytes).value_or(0));
            offset += entry_bytes;
        }
    }

    /// libavformat walks the samples of every edit. Edits that do not repeat samples are cheap.
    void finish_track() {
        constexpr std::uint64_t usual_edits = 8;
        if (track_.edits <= usual_edits || !track_.durations || movie_hz_ == 0) return;
        const double media_s =
            media_ticks() / static_cast<double>(std::max<std::uint64_t>(track_.media_hz, 1));
        const double edited_s = track_.edited / static_cast<double>(movie_hz_);
        const double repeats =
            media_s > 0 ? std::min(edited_s / media_s, static_cast<double>(track_.edits)) : 0;
        scan_.add_edited_samples(repeats * static_cast<double>(track_.samples));
    }

    double media_ticks() {
        constexpr std::uint64_t entry_bytes = 8;
        const Atom& atom = *track_.durations;
        std::uint64_t offset = atom.content + 8;
        double ticks = 0;
        for (std::uint64_t count = scan_.big_endian(atom.content + 4, 4).value_or(0);
             count > 0 && offset + entry_bytes <= atom.end && !scan_.stopped(); --count) {
            ticks += static_cast<double>(scan_.big_endian(offset, 4).value_or(0)) *
                     static_cast<double>(scan_.big_endian(offset + 4, 4).value_or(0));
            offset += entry_bytes;
        }
        return ticks;
    }

    void check_compressed(std::uint64_t bytes) {
        if (bytes <= max_compressed_header_bytes) return;
        scan_.fail(Error{.code = ErrorCode::limit_exceeded,
                         .message = "the input's compressed header is too large (got " +
                                    std::to_string(bytes) + " bytes, allowed " +
                                    std::to_string(max_compressed_header_bytes) + ")"});
    }

    void check_order(const Atom& samples) {
        if (samples.end - samples.content <= max_unseekable_bytes) return;
        scan_.fail(Error{.code = ErrorCode::undecodable,
                         .message = "the index of this MP4 comes after the samples, so the input "
                                    "must be seekable. Use a file instead of a stream"});
    }

    struct Track {
        std::uint64_t edits = 0;
        double edited = 0;  ///< In ticks of the movie's clock.
        std::uint64_t samples = 0;
        std::uint64_t media_hz = 0;
        std::optional<Atom> durations;
    };

    HeadScan& scan_;
    std::uint64_t movie_hz_ = 0;
    Track track_;
};

}  // namespace

void scan_mp4(HeadScan& scan, std::uint64_t offset) {
    constexpr std::array<std::string_view, 12> first_atoms = {"ftyp", "moov", "mdat", "free",
                                                              "skip", "wide", "pnot", "styp",
                                                              "moof", "junk", "udta", "uuid"};
    const auto type = scan.bytes(offset + 4, 4);
    const std::string_view text(reinterpret_cast<const char*>(type.data()), type.size());
    if (std::ranges::find(first_atoms, text) != first_atoms.end()) Mp4Scan(scan).scan_file(offset);
}

}  // namespace polymux::media
