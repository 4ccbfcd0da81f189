#include "polymux/media/mp3/id3.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "media/mp3/id3_parts.hpp"

namespace polymux::media::mp3 {

namespace {

using id3::Bytes;
using id3::Encoding;
using id3::FrameList;

constexpr std::size_t max_children = 255;  // CTOC counts its entries in one byte
constexpr unsigned ordered = 1;
constexpr unsigned top_level = 2;

void report_dropped(std::vector<std::string>* dropped, std::string name) {
    if (dropped != nullptr) dropped->push_back(std::move(name));
}

// Several values share a frame: ID3v2.4 separates them by NUL, ID3v2.3 by a slash, and running text
// (comments, lyrics) by a line break.
std::u32string join_version3(const id3::TextFrame& frame) {
    const bool is_running_text = frame.id == "COMM" || frame.id == "USLT";
    std::u32string text = frame.values.front();
    for (std::size_t i = 1; i < frame.values.size(); ++i) {
        text += is_running_text ? U'\n' : U'/';
        text += frame.values[i];
    }
    return text;
}

Bytes encode_frame(const id3::TextFrame& frame, int version) {
    const bool is_described = frame.id == "TXXX" || frame.id == "COMM" || frame.id == "USLT";
    const bool keeps_values = version == 4 && frame.language.empty();
    const std::u32string joined = keeps_values ? std::u32string{} : join_version3(frame);
    const std::array<std::u32string_view, 2> texts = {frame.description, joined};
    const Encoding encoding = id3::choose_encoding(version, texts);

    Bytes body = {static_cast<std::byte>(encoding)};
    id3::append_raw(body, frame.language);
    if (is_described) {
        id3::append_text(body, frame.description, encoding);
        id3::append_terminator(body, encoding);
    }
    if (!keeps_values) {
        id3::append_text(body, joined, encoding);
        return body;
    }
    for (std::size_t i = 0; i < frame.values.size(); ++i) {
        if (i > 0) id3::append_terminator(body, encoding);
        id3::append_text(body, frame.values[i], encoding);
    }
    return body;
}

void add_text(FrameList& frames, const Tags& tags, int version, const std::string& where,
              std::vector<std::string>* dropped) {
    for (const auto& frame : id3::text_frames(tags, version)) {
        if (!frames.add(frame.id, encode_frame(frame, version))) {
            report_dropped(dropped, where + frame.key);
        }
    }
}

std::uint32_t clamp_ms(std::int64_t value_ms) {
    return static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(value_ms, 0, std::numeric_limits<std::uint32_t>::max() - 1));
}

Bytes encode_chapter(const Chapter& chapter, const std::string& element, std::size_t limit_bytes,
                     int version, std::vector<std::string>* dropped) {
    constexpr std::uint32_t no_offset = 0xFFFF'FFFF;
    Bytes body;
    id3::append_raw(body, element);
    id3::append_terminator(body, Encoding::latin1);
    id3::append_number(body, clamp_ms(chapter.start_ms));
    id3::append_number(body, clamp_ms(std::max(chapter.start_ms, chapter.end_ms)));
    id3::append_number(body, no_offset);
    id3::append_number(body, no_offset);
    FrameList inner(version, limit_bytes);
    add_text(inner, chapter.tags, version, element + ": ", dropped);
    body.insert(body.end(), inner.bytes().begin(), inner.bytes().end());
    return body;
}

Bytes encode_contents(const std::string& element, unsigned flags,
                      std::span<const std::string> children) {
    Bytes body;
    id3::append_raw(body, element);
    id3::append_terminator(body, Encoding::latin1);
    body.push_back(static_cast<std::byte>(flags));
    body.push_back(static_cast<std::byte>(children.size()));
    for (const auto& child : children) {
        id3::append_raw(body, child);
        id3::append_terminator(body, Encoding::latin1);
    }
    return body;
}

// One table of contents. Above 255 chapters, it lists further tables of up to 255 each.
Bytes encode_contents_tree(std::span<const std::string> elements, int version) {
    FrameList frames(version, id3::max_tag_bytes);
    if (elements.size() <= max_children) {
        frames.add("CTOC", encode_contents("toc", top_level | ordered, elements));
        return frames.bytes();
    }
    FrameList leaves(version, id3::max_tag_bytes);
    std::vector<std::string> parts;
    while (!elements.empty()) {
        const auto part = elements.first(std::min(elements.size(), max_children));
        parts.push_back("toc" + std::to_string(parts.size()));
        leaves.add("CTOC", encode_contents(parts.back(), ordered, part));
        elements = elements.subspan(part.size());
    }
    frames.add("CTOC", encode_contents("toc", top_level | ordered, parts));
    frames.add_frames(leaves.bytes());
    return frames.bytes();
}

void add_chapters(FrameList& frames, const std::vector<Chapter>& chapters, int version,
                  std::vector<std::string>* dropped) {
    if (chapters.empty()) return;
    // Room for the table of contents: names of at most ten bytes, 255 of them per frame.
    constexpr std::size_t bytes_per_entry = 12;
    constexpr std::size_t fixed_bytes = 6'000;
    const std::size_t contents_bytes = chapters.size() * bytes_per_entry + fixed_bytes;
    if (frames.free_bytes() < contents_bytes) return report_dropped(dropped, "chapters");

    FrameList marks(version, frames.free_bytes() - contents_bytes);
    std::vector<std::string> elements;
    for (std::size_t i = 0; i < chapters.size(); ++i) {
        std::string element = "ch" + std::to_string(i);
        const bool has_place = elements.size() < max_children * max_children;
        if (has_place && marks.add("CHAP", encode_chapter(chapters[i], element, marks.free_bytes(),
                                                          version, dropped))) {
            elements.push_back(std::move(element));
        } else {
            report_dropped(dropped, "chapter " + std::to_string(i));
        }
    }
    frames.add_frames(encode_contents_tree(elements, version));
    frames.add_frames(marks.bytes());
}

void add_cover(FrameList& frames, const Cover& cover, int version,
               std::vector<std::string>* dropped) {
    if (cover.data.empty()) return;
    const std::u32string description = id3::single_line(id3::decode_text(cover.description));
    const std::array<std::u32string_view, 1> texts = {description};
    const Encoding encoding = id3::choose_encoding(version, texts);
    const bool is_known_type = cover.picture_type >= 0 && cover.picture_type <= 20;

    Bytes head = {static_cast<std::byte>(encoding)};
    id3::append_raw(head, id3::picture_mime_type(cover));
    id3::append_terminator(head, Encoding::latin1);
    head.push_back(static_cast<std::byte>(is_known_type ? cover.picture_type : 0));
    id3::append_text(head, description, encoding);
    id3::append_terminator(head, encoding);
    if (!frames.add("APIC", head, cover.data)) report_dropped(dropped, "cover");
}

}  // namespace

std::vector<std::byte> write_id3v2(const Id3Content& content, const Id3Options& options,
                                   std::vector<std::string>* dropped) {
    const int version = options.version == 4 ? 4 : 3;
    if (options.as_ffmpeg) return id3::write_as_ffmpeg(content, version, dropped);
    FrameList frames(version, id3::max_tag_bytes - id3::padding_bytes);
    add_text(frames, content.tags, version, {}, dropped);
    add_chapters(frames, content.chapters, version, dropped);
    if (content.cover) add_cover(frames, *content.cover, version, dropped);
    if (frames.bytes().empty()) return {};
    return frames.as_tag();
}

}  // namespace polymux::media::mp3
