// Writes the tag exactly as libavformat 59's mp3 muxer does, including its quirks: every unknown
// name is a TXXX frame, even comments; chapter frames have plain sizes even in ID3v2.4; the chapter
// count is truncated to eight bits.
//
// `tags` is the muxer's dictionary. The ffmpeg program deletes creation_time, company_name,
// product_name and product_version from its copy, and libavformat appends "encoder" with its
// "Lavf..." name. A caller that needs the program's file must do both with AVDictionary first.
#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "ascii.hpp"
#include "media/mp3/id3_parts.hpp"

namespace polymux::media::mp3::id3 {

namespace {

// The part of a string that C code sees.
std::string_view before_nul(std::string_view text) {
    return text.substr(0, text.find('\0'));
}

// AVDictionary's order: replacing or deleting an entry moves the last one to its place, and the
// replacement goes to the end. Only names that differ in more than case are distinct.
class Dictionary {
public:
    using Entry = std::pair<std::string, std::string>;

    void set(std::string_view key, std::string_view value) {
        if (const auto found = positions_.find(lower_case(key)); found != positions_.end()) {
            remove(found->second);
        }
        positions_[lower_case(key)] = entries_.size();
        entries_.emplace_back(key, value);
    }

    void remove(std::size_t position) {
        positions_.erase(lower_case(entries_[position].first));
        if (position + 1 < entries_.size()) {
            entries_[position] = std::move(entries_.back());
            positions_[lower_case(entries_[position].first)] = position;
        }
        entries_.pop_back();
    }

    [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }

private:
    std::vector<Entry> entries_;
    std::unordered_map<std::string, std::size_t> positions_;
};

struct Name {
    std::string_view generic;
    std::string_view id;
};

constexpr std::array names = {
    Name{"album", "TALB"},     Name{"composer", "TCOM"},   Name{"genre", "TCON"},
    Name{"copyright", "TCOP"}, Name{"encoded_by", "TENC"}, Name{"title", "TIT2"},
    Name{"language", "TLAN"},  Name{"artist", "TPE1"},     Name{"album_artist", "TPE2"},
    Name{"performer", "TPE3"}, Name{"disc", "TPOS"},       Name{"publisher", "TPUB"},
    Name{"track", "TRCK"},     Name{"encoder", "TSSE"},    Name{"lyrics", "USLT"},
};
constexpr std::array version4_names = {
    Name{"compilation", "TCMP"}, Name{"date", "TDRC"},        Name{"creation_time", "TDEN"},
    Name{"album-sort", "TSOA"},  Name{"artist-sort", "TSOP"}, Name{"title-sort", "TSOT"},
    Name{"grouping", "TIT1"},
};

constexpr std::array<std::string_view, 32> ffmpeg_shared_ids = {
    "TALB", "TBPM", "TCOM", "TCON", "TCOP", "TDLY", "TENC", "TEXT", "TFLT", "TIT1", "TIT2",
    "TIT3", "TKEY", "TLAN", "TLEN", "TMED", "TOAL", "TOFN", "TOLY", "TOPE", "TOWN", "TPE1",
    "TPE2", "TPE3", "TPE4", "TPOS", "TPUB", "TRCK", "TRSN", "TRSO", "TSRC", "TSSE"};
constexpr std::array<std::string_view, 6> ffmpeg_version3_ids = {"TDAT", "TIME", "TORY",
                                                                 "TRDA", "TSIZ", "TYER"};
constexpr std::array<std::string_view, 13> ffmpeg_version4_ids = {
    "TDEN", "TDOR", "TDRC", "TDRL", "TDTG", "TIPL", "TMCL",
    "TMOO", "TPRO", "TSOA", "TSOP", "TSOT", "TSST"};

bool is_frame_id(std::string_view key, int version) {
    return contains(ffmpeg_shared_ids, key) ||
           (version == 4 ? contains(ffmpeg_version4_ids, key) : contains(ffmpeg_version3_ids, key));
}

Dictionary rename(const Dictionary& source, std::span<const Name> table) {
    Dictionary result;
    for (const auto& [key, value] : source.entries()) {
        const auto found = std::ranges::find(table, lower_case(key), &Name::generic);
        result.set(found != table.end() ? found->id : std::string_view(key), value);
    }
    return result;
}

bool is_digit_up_to(char letter, char highest) {
    return letter >= '0' && letter <= highest;
}

// Whether `text` continues with "-MM-DD" and then ends or has a space.
bool has_month_and_day(std::string_view text) {
    return text.size() >= 6 && text[0] == '-' && is_digit_up_to(text[1], '1') &&
           is_digit_up_to(text[2], '9') && text[3] == '-' && is_digit_up_to(text[4], '3') &&
           is_digit_up_to(text[5], '9') && (text.size() == 6 || text[6] == ' ');
}

// ID3v2.3 has a year frame and a day-and-month frame instead of a date.
Dictionary split_dates(const Dictionary& source) {
    Dictionary result;
    for (const auto& [key, value] : source.entries()) {
        const std::string_view text = value;
        const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
        const std::string_view rest = text.substr(digits);
        if (lower_case(key) != "date" || (!rest.empty() && rest.front() != '-')) {
            result.set(key, value);
            continue;
        }
        result.set("TYER", text.substr(0, 4));
        if (has_month_and_day(rest)) {
            result.set("TDAT", std::string(rest.substr(4, 2)) + std::string(rest.substr(1, 2)));
        }
    }
    return result;
}

// libavutil's lenient UTF-8: accepts up to six bytes, overlong forms and surrogates, and skips a
// broken sequence including the byte that broke it.
std::u32string decode_leniently(std::string_view text) {
    std::u32string result;
    std::size_t i = 0;
    while (i < text.size()) {
        const auto lead = static_cast<unsigned char>(text[i++]);
        if (lead < 0x80) {
            result.push_back(lead);
            continue;
        }
        if (lead < 0xC0 || lead >= 0xFE) continue;
        const unsigned following =
            lead < 0xE0 ? 1 : (lead < 0xF0 ? 2 : (lead < 0xF8 ? 3 : (lead < 0xFC ? 4 : 5)));
        char32_t letter = lead & (0x3FU >> following);
        bool is_whole = true;
        for (unsigned n = 0; n < following && is_whole; ++n) {
            if (i >= text.size()) return result;
            const auto next = static_cast<unsigned char>(text[i++]);
            is_whole = (next & 0xC0) == 0x80;
            letter = letter << 6 | (next & 0x3FU);
        }
        if (is_whole) result.push_back(letter);
    }
    return result;
}

bool is_ascii(std::string_view text) {
    return std::ranges::all_of(
        text, [](char letter) { return static_cast<unsigned char>(letter) < 0x80; });
}

// ID3v2.3: UTF-16 unless all text is ASCII. Each string ends with a terminator.
Encoding encoding_for(int version, std::string_view first, std::string_view second = {}) {
    if (version == 4) return Encoding::utf8;
    return is_ascii(first) && is_ascii(second) ? Encoding::latin1 : Encoding::utf16;
}

void append_string(Bytes& bytes, std::string_view text, Encoding encoding) {
    if (encoding == Encoding::utf16) {
        append_text(bytes, decode_leniently(text), encoding);
    } else {
        append_raw(bytes, text);
    }
    append_terminator(bytes, encoding);
}

// Owner, then the value with its "\xNN" as bytes. Returns nothing for a wrong escape, for which
// ffmpeg writes no file at all.
std::optional<Bytes> private_frame(std::string_view owner, std::string_view value) {
    Bytes body;
    append_raw(body, owner);
    append_terminator(body, Encoding::latin1);
    for (std::size_t i = 0; i < value.size(); ++i) {
        if (!value.substr(i).starts_with("\\x")) {
            body.push_back(static_cast<std::byte>(value[i]));
            continue;
        }
        if (i + 3 >= value.size()) return std::nullopt;
        const int high = hex_digit(value[i + 2]);
        const int low = hex_digit(value[i + 3]);
        if (high < 0 || low < 0) return std::nullopt;
        body.push_back(static_cast<std::byte>(high * 16 + low));
        i += 3;
    }
    return body;
}

bool add_entry(FrameList& frames, std::string_view key, std::string_view value, int version) {
    constexpr std::string_view private_prefix = "id3v2_priv.";
    if (!is_frame_id(key, version) && key.starts_with(private_prefix)) {
        const auto body = private_frame(key.substr(private_prefix.size()), value);
        return body && frames.add("PRIV", *body);
    }
    const bool is_user_text = !is_frame_id(key, version);
    const Encoding encoding =
        is_user_text ? encoding_for(version, key, value) : encoding_for(version, value);
    Bytes body = {static_cast<std::byte>(encoding)};
    if (is_user_text) append_string(body, key, encoding);
    append_string(body, value, encoding);
    return frames.add(is_user_text ? std::string_view("TXXX") : key, body);
}

void add_dictionary(FrameList& frames, Dictionary tags, int version,
                    std::vector<std::string>* dropped) {
    tags = rename(tags, names);
    tags = version == 4 ? rename(tags, version4_names) : split_dates(tags);
    for (const auto& [key, value] : tags.entries()) {
        if (!add_entry(frames, key, value, version) && dropped != nullptr) dropped->push_back(key);
    }
}

Dictionary as_dictionary(const Tags& tags) {
    Dictionary result;
    for (const auto& [key, value] : tags) result.set(before_nul(key), before_nul(value));
    return result;
}

// libavformat deletes these when the muxer starts. It skips the entry that moves into a gap.
void remove_encoder_variants(Dictionary& tags) {
    for (std::size_t i = 0; i < tags.entries().size(); ++i) {
        if (lower_case(tags.entries()[i].first).starts_with("encoder-")) tags.remove(i);
    }
}

void add_chapters(FrameList& frames, const std::vector<Chapter>& chapters, int version,
                  std::vector<std::string>* dropped) {
    if (chapters.empty()) return;
    Bytes contents;
    append_string(contents, "toc", Encoding::latin1);
    contents.push_back(std::byte{3});
    contents.push_back(static_cast<std::byte>(chapters.size() & 0xFF));
    FrameList marks(version, frames.free_bytes());
    for (std::size_t i = 0; i < chapters.size(); ++i) {
        const std::string element = "ch" + std::to_string(i);
        append_string(contents, element, Encoding::latin1);
        Bytes body;
        append_string(body, element, Encoding::latin1);
        append_number(body, static_cast<std::uint32_t>(chapters[i].start_ms));
        append_number(body, static_cast<std::uint32_t>(chapters[i].end_ms));
        append_number(body, 0xFFFF'FFFF);
        append_number(body, 0xFFFF'FFFF);
        FrameList inner(version, marks.free_bytes());
        add_dictionary(inner, as_dictionary(chapters[i].tags), version, dropped);
        const bool fits = marks.add("CHAP", body, inner.bytes(), SizeCoding::plain);
        if (!fits && dropped != nullptr) dropped->push_back("chapter " + std::to_string(i));
    }
    const bool fits =
        frames.add("CTOC", contents, {}, SizeCoding::plain) && frames.add_frames(marks.bytes());
    if (!fits && dropped != nullptr) dropped->emplace_back("chapters");
}

void add_cover(FrameList& frames, const Cover& cover, int version,
               std::vector<std::string>* dropped) {
    const std::string_view description = before_nul(cover.description);
    const Encoding encoding = encoding_for(version, description);
    Bytes head = {static_cast<std::byte>(encoding)};
    append_string(head, picture_mime_type(cover), Encoding::latin1);
    head.push_back(static_cast<std::byte>(cover.picture_type));
    append_string(head, description, encoding);
    if (!frames.add("APIC", head, cover.data) && dropped != nullptr) dropped->emplace_back("cover");
}

}  // namespace

Bytes write_as_ffmpeg(const Id3Content& content, int version, std::vector<std::string>* dropped) {
    FrameList frames(version, max_tag_bytes - padding_bytes);
    Dictionary tags = as_dictionary(content.tags);
    remove_encoder_variants(tags);
    add_dictionary(frames, std::move(tags), version, dropped);
    add_chapters(frames, content.chapters, version, dropped);
    if (content.cover) add_cover(frames, *content.cover, version, dropped);
    return frames.as_tag();
}

}  // namespace polymux::media::mp3::id3
