// Maps tags to frames. Generic names are FFmpeg's or, if FFmpeg defines no name, those used by its
// demuxers and by common taggers.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "ascii.hpp"
#include "media/mp3/id3_parts.hpp"

namespace polymux::media::mp3::id3 {

namespace {

struct FrameName {
    std::string_view key;
    std::string_view version3;  // empty: no such frame, the tag becomes TXXX
    std::string_view version4;
};

constexpr std::array frame_names = {
    FrameName{"album", "TALB", "TALB"},
    FrameName{"album-sort", "TSOA", "TSOA"},
    FrameName{"album_artist", "TPE2", "TPE2"},
    FrameName{"album_artist-sort", "TSO2", "TSO2"},
    FrameName{"albumartist", "TPE2", "TPE2"},
    FrameName{"artist", "TPE1", "TPE1"},
    FrameName{"artist-sort", "TSOP", "TSOP"},
    FrameName{"bpm", "TBPM", "TBPM"},
    FrameName{"compilation", "TCMP", "TCMP"},
    FrameName{"composer", "TCOM", "TCOM"},
    FrameName{"composer-sort", "TSOC", "TSOC"},
    FrameName{"conductor", "TPE3", "TPE3"},
    FrameName{"copyright", "TCOP", "TCOP"},
    FrameName{"creation_time", "", "TDEN"},
    FrameName{"disc", "TPOS", "TPOS"},
    FrameName{"encoded_by", "TENC", "TENC"},
    FrameName{"encoder", "TSSE", "TSSE"},
    FrameName{"genre", "TCON", "TCON"},
    FrameName{"grouping", "TIT1", "TIT1"},
    FrameName{"initialkey", "TKEY", "TKEY"},
    FrameName{"isrc", "TSRC", "TSRC"},
    FrameName{"label", "TPUB", "TPUB"},
    FrameName{"language", "TLAN", "TLAN"},
    FrameName{"lyricist", "TEXT", "TEXT"},
    FrameName{"media", "TMED", "TMED"},
    FrameName{"mood", "", "TMOO"},
    FrameName{"original_artist", "TOPE", "TOPE"},
    FrameName{"originaldate", "", "TDOR"},
    FrameName{"performer", "TPE3", "TPE3"},
    FrameName{"publisher", "TPUB", "TPUB"},
    FrameName{"remixer", "TPE4", "TPE4"},
    FrameName{"sort_album", "TSOA", "TSOA"},
    FrameName{"sort_album_artist", "TSO2", "TSO2"},
    FrameName{"sort_artist", "TSOP", "TSOP"},
    FrameName{"sort_composer", "TSOC", "TSOC"},
    FrameName{"sort_name", "TSOT", "TSOT"},
    FrameName{"subtitle", "TIT3", "TIT3"},
    FrameName{"title", "TIT2", "TIT2"},
    FrameName{"title-sort", "TSOT", "TSOT"},
    FrameName{"track", "TRCK", "TRCK"},
};

// Text frames that a demuxer passes through under their own names.
constexpr std::array<std::string_view, 37> shared_ids = {
    "TALB", "TBPM", "TCMP", "TCOM", "TCON", "TCOP", "TDLY", "TENC", "TEXT", "TFLT",
    "TIT1", "TIT2", "TIT3", "TKEY", "TLAN", "TLEN", "TMED", "TOAL", "TOFN", "TOLY",
    "TOPE", "TOWN", "TPE1", "TPE2", "TPE3", "TPE4", "TPOS", "TPUB", "TRCK", "TRSN",
    "TRSO", "TSO2", "TSOC", "TSOA", "TSOP", "TSOT", "TSRC"};
constexpr std::array<std::string_view, 6> version3_ids = {"TDAT", "TIME", "TORY",
                                                          "TRDA", "TSIZ", "TYER"};
constexpr std::array<std::string_view, 10> version4_ids = {"TDEN", "TDOR", "TDRC", "TDRL", "TDTG",
                                                           "TIPL", "TMCL", "TMOO", "TPRO", "TSST"};

std::u32string lower(std::u32string text) {
    for (char32_t& letter : text) {
        if (letter >= U'A' && letter <= U'Z') letter += U'a' - U'A';
    }
    return text;
}

bool is_language(std::string_view text) {
    return text.size() == 3 && std::ranges::all_of(text, [](char letter) {
               return polymux::lower(letter) >= 'a' && polymux::lower(letter) <= 'z';
           });
}

std::string_view frame_id(std::string_view key, int version) {
    const std::string name = lower_case(key);
    const auto* found = std::ranges::lower_bound(frame_names, name, {}, &FrameName::key);
    if (found != frame_names.end() && found->key == name) {
        return version == 4 ? found->version4 : found->version3;
    }
    const bool is_own_id =
        contains(shared_ids, key) ||
        (version == 4 ? contains(version4_ids, key) : contains(version3_ids, key)) || key == "TSSE";
    return is_own_id ? key : std::string_view{};
}

// "YYYY[-MM[-DD[(T| )hh:mm[:ss[...]]]]]" or "YYYYMMDD". A part that does not match the pattern is
// empty.
struct Date {
    std::string year, month, day, hour, minute, second;
};

std::optional<Date> parse_date(std::string_view text) {
    Date date;
    if (text.size() == 8 && std::ranges::all_of(text, is_digit)) {
        date.year = text.substr(0, 4);
        date.month = text.substr(4, 2);
        date.day = text.substr(6, 2);
        return date;
    }
    const std::array<std::pair<std::string_view, std::string*>, 6> parts = {{{"", &date.year},
                                                                             {"-", &date.month},
                                                                             {"-", &date.day},
                                                                             {"T ", &date.hour},
                                                                             {":", &date.minute},
                                                                             {":", &date.second}}};
    std::size_t width = 4;
    for (const auto& [separators, part] : parts) {
        if (!separators.empty()) {
            if (text.empty()) break;
            if (separators.find(text.front()) == std::string_view::npos) return std::nullopt;
            text.remove_prefix(1);
        }
        if (text.size() < width || !std::ranges::all_of(text.substr(0, width), is_digit)) {
            return std::nullopt;
        }
        *part = text.substr(0, width);
        text.remove_prefix(width);
        width = 2;
    }
    // The tag has no place for fractions of a second or the time zone.
    if (!text.empty() && (date.second.empty() ||
                          std::string_view(".Z+-").find(text.front()) == std::string_view::npos)) {
        return std::nullopt;
    }
    if (!date.hour.empty() && date.minute.empty()) date.hour.clear();
    return date;
}

std::string as_timestamp(const Date& date) {
    std::string text = date.year;
    if (!date.month.empty()) text += '-' + date.month;
    if (!date.day.empty()) text += '-' + date.day;
    if (!date.hour.empty()) text += 'T' + date.hour + ':' + date.minute;
    if (!date.second.empty()) text += ':' + date.second;
    return text;
}

// Collects text frames and keeps one frame per identity, as the standard requires.
class Collector {
public:
    explicit Collector(int version) : version_(version) {}

    void add_tag(const std::string& key, std::string_view value) {
        const std::string name = lower_case(key);
        if (name == "comment") return add_full_text(key, "COMM", {}, "XXX", value);
        if (name == "lyrics" || name.starts_with("lyrics-")) return add_lyrics(key, value);
        if (name == "date" && add_date(key, value)) return;
        if (name == "creation_time" || name == "originaldate") {
            if (const auto date = parse_date(value); date && version_ == 4) {
                return add(key, frame_id(key, version_), {}, {}, as_timestamp(*date));
            }
            return add_user_text(key, value);
        }
        const std::string_view id = frame_id(key, version_);
        if (id.empty() || (id == "TLAN" && !is_language(value))) return add_user_text(key, value);
        add(key, id, {}, {}, value);
    }

    std::vector<TextFrame> take() { return std::move(frames_); }

private:
    void add(const std::string& key, std::string_view id, std::u32string description,
             std::string language, std::string_view value) {
        std::u32string text = decode_text(value);
        if (text.empty()) return;
        const auto [found, is_new] =
            positions_.try_emplace({std::string(id), lower(description), language}, frames_.size());
        if (is_new) {
            frames_.push_back(
                {key, std::string(id), std::move(description), std::move(language), {}});
        }
        frames_[found->second].values.push_back(std::move(text));
    }

    void add_user_text(const std::string& key, std::string_view value) {
        add(key, "TXXX", single_line(decode_text(key)), {}, value);
    }

    void add_full_text(const std::string& key, std::string_view id, std::string_view description,
                       std::string_view language, std::string_view value) {
        add(key, id, single_line(decode_text(description)), std::string(language), value);
    }

    // "lyrics", "lyrics-eng", "lyrics-Chorus-eng": FFmpeg's names for the USLT frames that it
    // reads.
    void add_lyrics(const std::string& key, std::string_view value) {
        std::string_view rest = std::string_view(key).substr(std::string_view("lyrics").size());
        std::string language = "XXX";
        if (rest.size() >= 4 && rest[rest.size() - 4] == '-' &&
            is_language(rest.substr(rest.size() - 3))) {
            const std::string given = lower_case(rest.substr(rest.size() - 3));
            if (given != "xxx") language = given;
            rest.remove_suffix(4);
        }
        if (!rest.empty()) rest.remove_prefix(1);
        add_full_text(key, "USLT", rest, language, value);
    }

    // Returns false for an invalid date, which stays readable as TXXX.
    bool add_date(const std::string& key, std::string_view value) {
        const auto date = parse_date(value);
        if (!date || has_date_) return false;
        has_date_ = true;
        if (version_ == 4) {
            add(key, "TDRC", {}, {}, as_timestamp(*date));
            return true;
        }
        add(key, "TYER", {}, {}, date->year);
        if (!date->day.empty()) add(key, "TDAT", {}, {}, date->day + date->month);
        if (!date->hour.empty()) add(key, "TIME", {}, {}, date->hour + date->minute);
        return true;
    }

    int version_;
    bool has_date_ = false;
    std::vector<TextFrame> frames_;
    std::map<std::tuple<std::string, std::u32string, std::string>, std::size_t> positions_;
};

}  // namespace

std::vector<TextFrame> text_frames(const Tags& tags, int version) {
    static_assert(std::ranges::is_sorted(frame_names, {}, &FrameName::key));
    Collector collector(version);
    for (const auto& [key, value] : tags) collector.add_tag(key, value);
    return collector.take();
}

std::string picture_mime_type(const Cover& cover) {
    const std::string type = lower_case(cover.mime_type);
    const bool is_plain =
        std::ranges::all_of(type, [](char letter) { return letter > ' ' && letter < 0x7F; });
    if (!is_plain || !type.starts_with("image/")) return "image/";
    return type == "image/jpg" ? "image/jpeg" : type;
}

}  // namespace polymux::media::mp3::id3
