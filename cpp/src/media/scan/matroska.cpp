// Tags and chapters of Matroska and WebM: those before the first cluster, and those that a SeekHead
// refers to.
#include <algorithm>
#include <bit>
#include <vector>

#include "media/scan/head_scan.hpp"

namespace polymux::media {

namespace {

constexpr std::uint64_t id_ebml = 0x1A45'DFA3;
constexpr std::uint64_t id_segment = 0x1853'8067;
constexpr std::uint64_t id_cluster = 0x1F43'B675;
constexpr std::uint64_t id_seek_head = 0x114D'9B74;
constexpr std::uint64_t id_seek = 0x4DBB;
constexpr std::uint64_t id_seek_position = 0x53AC;
constexpr std::uint64_t id_tags = 0x1254'C367;
constexpr std::uint64_t id_tag = 0x7373;
constexpr std::uint64_t id_simple_tag = 0x67C8;
constexpr std::uint64_t id_tag_name = 0x45A3;
constexpr std::uint64_t id_chapters = 0x1043'A770;
constexpr std::uint64_t id_edition = 0x45B9;
constexpr std::uint64_t id_chapter_atom = 0xB6;

struct Element {
    std::uint64_t id = 0;
    std::uint64_t content = 0;
    std::uint64_t end = 0;
};

class MatroskaScan {
public:
    explicit MatroskaScan(HeadScan& scan) : scan_(scan) {}

    void scan_file(std::uint64_t offset) {
        while (const std::optional<Element> element = next(offset, UINT64_MAX)) {
            if (element->id == id_segment) {
                segment_ = element->content;
                scan_segment(*element);
                return;
            }
            offset = element->end;
        }
    }

private:
    /// A number of one to eight bytes whose first byte has the length, as its leading zeros. Moves
    /// `offset` after it. An ID keeps the bit that ends the zeros.
    std::optional<std::uint64_t> number(std::uint64_t& offset, bool is_id) {
        const std::optional<std::uint64_t> first = scan_.big_endian(offset, 1);
        if (!first || *first == 0) return std::nullopt;
        const auto width =
            static_cast<std::size_t>(std::countl_zero(static_cast<std::uint8_t>(*first))) + 1;
        std::optional<std::uint64_t> value = scan_.big_endian(offset, width);
        if (!value) return std::nullopt;
        offset += width;
        const std::uint64_t mark = std::uint64_t{1} << (7 * width);
        if (is_id) return value;
        const bool unknown = *value == 2 * mark - 1;
        return unknown ? UINT64_MAX : *value & (mark - 1);
    }

    /// The element at `offset`, cut at the end of its parent.
    std::optional<Element> next(std::uint64_t offset, std::uint64_t parent_end) {
        if (offset >= parent_end) return std::nullopt;
        const std::optional<std::uint64_t> id = number(offset, true);
        if (!id) return std::nullopt;
        const std::optional<std::uint64_t> size = number(offset, false);
        if (!size || offset > parent_end) return std::nullopt;
        const std::uint64_t end = *size < parent_end - offset ? offset + *size : parent_end;
        return Element{.id = *id, .content = offset, .end = end};
    }

    template <typename Visit>
    void for_each(const Element& parent, const Visit& visit) {
        std::uint64_t offset = parent.content;
        while (const std::optional<Element> child = next(offset, parent.end)) {
            visit(*child);
            offset = child->end;
        }
    }

    void scan_segment(const Element& segment) {
        std::uint64_t offset = segment.content;
        while (const std::optional<Element> child = next(offset, segment.end)) {
            if (child->id == id_cluster) return;
            scan_top(*child);
            offset = child->end;
        }
    }

    void scan_top(const Element& element) {
        if (element.id == id_tags) scan_tags(element);
        if (element.id == id_chapters) scan_chapters(element);
        if (element.id != id_seek_head || !scan_.seekable()) return;
        for_each(element, [this](const Element& seek) {
            if (seek.id == id_seek) follow(seek);
        });
    }

    void follow(const Element& seek) {
        for_each(seek, [this](const Element& field) {
            if (field.id != id_seek_position || field.end - field.content > 8) return;
            const auto position = scan_.big_endian(field.content, field.end - field.content);
            if (!position || *position > INT64_MAX || ++jumps_ > max_jumps) return;
            if (const auto found = next(segment_ + *position, UINT64_MAX)) scan_top(*found);
        });
    }

    void scan_tags(const Element& tags) {
        if (!scanned(tags)) return;
        for_each(tags, [this](const Element& tag) {
            if (tag.id == id_tag) scan_simple_tags(tag, 0);
        });
    }

    void scan_simple_tags(const Element& parent, int depth) {
        constexpr int max_depth = 16;
        for_each(parent, [&](const Element& child) {
            if (child.id == id_tag_name) scan_.add_tag(child.end - child.content);
            if (child.id == id_simple_tag && depth < max_depth) scan_simple_tags(child, depth + 1);
        });
    }

    void scan_chapters(const Element& chapters) {
        if (!scanned(chapters)) return;
        for_each(chapters, [this](const Element& edition) {
            if (edition.id != id_edition) return;
            for_each(edition, [this](const Element& atom) {
                if (atom.id == id_chapter_atom) scan_.add_chapter();
            });
        });
    }

    /// Returns true once for each element.
    bool scanned(const Element& element) {
        if (std::find(scanned_.begin(), scanned_.end(), element.content) != scanned_.end()) {
            return false;
        }
        scanned_.push_back(element.content);
        return true;
    }

    static constexpr int max_jumps = 64;  // As in libavformat.

    HeadScan& scan_;
    std::uint64_t segment_ = 0;
    int jumps_ = 0;
    std::vector<std::uint64_t> scanned_;
};

}  // namespace

void scan_matroska(HeadScan& scan, std::uint64_t offset) {
    if (scan.big_endian(offset, 4) == id_ebml) MatroskaScan(scan).scan_file(offset);
}

}  // namespace polymux::media
