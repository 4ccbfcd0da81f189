#include "polymux/song/title_match.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace polymux::song {

namespace {

// Parameters of name comparison are not part of `Parameters`, because they do not affect audio or
// the index.
constexpr std::size_t word_bits = 64;
constexpr std::size_t direct_codes = 128;
constexpr std::size_t max_text_length = 512;
/// Words less similar than this do not match.
constexpr float min_word_likeness = 0.6F;
constexpr std::u32string_view by = U" by ";
/// An exact title ranks above a title found only by splitting at "by".
constexpr float of_title_by_artist = 0.99F;
/// "Stand by Me by Ben E. King": any "by" may precede the artist.
constexpr std::size_t max_by_splits = 4;

/// A text to compare others with: for each code point, the positions where it occurs.
class Pattern {
public:
    explicit Pattern(std::u32string_view text)
        : text_(text),
          words_(std::max<std::size_t>(1, (text.size() + word_bits - 1) / word_bits)),
          direct_(direct_codes * words_),
          none_(words_),
          columns_(words_) {
        for (std::size_t place = 0; place < text.size(); ++place) {
            std::uint64_t* const mask = mask_to_fill(text[place]);
            mask[place / word_bits] |= std::uint64_t{1} << (place % word_bits);
        }
    }

    [[nodiscard]] std::u32string_view text() const noexcept { return text_; }

    [[nodiscard]] std::size_t distance(std::u32string_view other) {
        if (text_.empty()) return other.size();
        std::ranges::fill(columns_, Column{});
        std::size_t edits = text_.size();
        const std::uint64_t* before = none_.data();
        for (const char32_t code : other) {
            const std::uint64_t* const equal = mask_of(code);
            edits = next_column(equal, before, edits);
            before = equal;
        }
        return edits;
    }

    /// 1 for the same text, 0 for nothing in common.
    [[nodiscard]] float likeness(std::u32string_view other) {
        const std::size_t max_length = std::max(text_.size(), other.size());
        if (max_length == 0) return 1;
        return 1 - static_cast<float>(distance(other)) / static_cast<float>(max_length);
    }

private:
    /// Differences down a column of the distance table, 64 rows at a time, and where its cells
    /// equal those to the upper left.
    struct Column {
        std::uint64_t rises = ~std::uint64_t{0};
        std::uint64_t falls = 0;
        std::uint64_t diagonal = 0;
    };

    std::uint64_t* mask_to_fill(char32_t code) {
        if (code < direct_codes) return &direct_[code * words_];
        for (auto& [known, mask] : others_) {
            if (known == code) return mask.data();
        }
        return others_.emplace_back(code, std::vector<std::uint64_t>(words_)).second.data();
    }

    [[nodiscard]] const std::uint64_t* mask_of(char32_t code) const noexcept {
        if (code < direct_codes) return &direct_[code * words_];
        for (const auto& [known, mask] : others_) {
            if (known == code) return mask.data();
        }
        return none_.data();
    }

    /// Advances by one code point. `equal` has its positions, `before` those of the previous one.
    /// Returns the distance at the bottom of the new column.
    std::size_t next_column(const std::uint64_t* equal, const std::uint64_t* before,
                            std::size_t edits) {
        std::uint64_t rise = 1;
        std::uint64_t fall = 0;
        std::uint64_t exchange = 0;
        const std::uint64_t foot = std::uint64_t{1} << ((text_.size() - 1) % word_bits);
        for (std::size_t word = 0; word < words_; ++word) {
            Column& column = columns_[word];
            const std::uint64_t late = ~column.diagonal & equal[word];
            const std::uint64_t exchanged = (late << 1 | exchange) & before[word];
            exchange = late >> (word_bits - 1);

            const std::uint64_t hit = equal[word] | fall;
            const std::uint64_t diagonal = (((hit & column.rises) + column.rises) ^ column.rises) |
                                           hit | column.falls | exchanged;
            std::uint64_t rises = column.falls | ~(diagonal | column.rises);
            std::uint64_t falls = diagonal & column.rises;
            if (word + 1 == words_) {
                edits += (rises & foot) != 0 ? 1 : 0;
                edits -= (falls & foot) != 0 ? 1 : 0;
            }
            const std::uint64_t next_rise = rises >> (word_bits - 1);
            const std::uint64_t next_fall = falls >> (word_bits - 1);
            rises = rises << 1 | rise;
            falls = falls << 1 | fall;
            rise = next_rise;
            fall = next_fall;
            column = {.rises = falls | ~(diagonal | rises),
                      .falls = rises & diagonal,
                      .diagonal = diagonal};
        }
        return edits;
    }

    std::u32string_view text_;
    std::size_t words_;
    std::vector<std::uint64_t> direct_;
    std::vector<std::pair<char32_t, std::vector<std::uint64_t>>> others_;
    std::vector<std::uint64_t> none_;
    std::vector<Column> columns_;
};

void append_words(std::u32string_view text, std::vector<std::u32string_view>& words) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(U' '), text.size());
        if (end > 0) words.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

std::u32string_view bounded(std::u32string_view text) {
    return text.substr(0, max_text_length);
}

struct Score {
    float likeness = 0;
    bool of_both = false;  ///< Title and artist together match best.
};

class WantedTitle {
public:
    explicit WantedTitle(std::u32string_view text) : whole_(bounded(text)) {
        std::vector<std::u32string_view> words;
        append_words(bounded(text), words);
        for (const std::u32string_view word : words) words_.emplace_back(word);
        const std::u32string_view typed = whole_.text();
        for (std::size_t at = typed.find(by); at != typed.npos && named_.size() < max_by_splits;
             at = typed.find(by, at + 1)) {
            named_.push_back({.title = Pattern(typed.substr(0, at)),
                              .artist = Pattern(typed.substr(at + by.size()))});
        }
    }

    [[nodiscard]] Score score(const FoldedTitle& song) {
        const std::u32string_view title = bounded(song.title);
        const std::u32string_view artist = bounded(song.artist);
        const float best = std::max(
            {whole_.likeness(title), words_found(title, artist), beginning(whole_.text(), title)});
        float of_both = 0;
        if (!artist.empty()) {
            of_both = std::max({whole_.likeness(joined(title, artist)),
                                whole_.likeness(joined(artist, title)), by_artist(title, artist)});
        }
        return {.likeness = std::max(best, of_both), .of_both = of_both >= best};
    }

private:
    /// The texts before and after a "by".
    struct Named {
        Pattern title;
        Pattern artist;
    };

    /// Compares each half of "title by artist" with the title and the artist, weighted by length.
    [[nodiscard]] float by_artist(std::u32string_view title, std::u32string_view artist) {
        float best = 0;
        for (Named& one : named_) {
            const float of_artist = one.artist.likeness(artist);
            if (of_artist < min_word_likeness) continue;
            const float of_title =
                std::max(one.title.likeness(title), beginning(one.title.text(), title));
            const auto title_length = static_cast<float>(one.title.text().size());
            const auto artist_length = static_cast<float>(one.artist.text().size());
            best = std::max(best, (of_title * title_length + of_artist * artist_length) /
                                      (title_length + artist_length));
        }
        return best * of_title_by_artist;
    }

    std::u32string_view joined(std::u32string_view one, std::u32string_view other) {
        both_.assign(one);
        both_.push_back(U' ');
        both_.append(other);
        return both_;
    }

    /// Compares each word of the query with its most similar word, weighted by length. The score
    /// rises if the title has few other words.
    [[nodiscard]] float words_found(std::u32string_view title, std::u32string_view artist) {
        their_words_.clear();
        append_words(title, their_words_);
        const std::size_t of_title = their_words_.size();
        append_words(artist, their_words_);
        std::size_t wanted = 0;
        float found = 0;
        float found_in_title = 0;
        for (Pattern& word : words_) {
            const auto length = static_cast<float>(word.text().size());
            const auto [likeness, place] = best_word(word);
            found += likeness * length;
            if (place < of_title) found_in_title += likeness * length;
            wanted += word.text().size();
        }
        if (wanted == 0 || of_title == 0) return 0;
        std::size_t letters = 0;
        for (std::size_t place = 0; place < of_title; ++place) {
            letters += their_words_[place].size();
        }
        const float covered = std::min(1.0F, found_in_title / static_cast<float>(letters));
        return found / static_cast<float>(wanted) * (0.75F + 0.22F * covered);
    }

    [[nodiscard]] std::pair<float, std::size_t> best_word(Pattern& word) {
        float best = 0;
        std::size_t place = their_words_.size();
        for (std::size_t at = 0; at < their_words_.size(); ++at) {
            const std::u32string_view theirs = their_words_[at];
            const auto length = static_cast<float>(word.text().size());
            const auto their_length = static_cast<float>(theirs.size());
            // A text with such a different length cannot be similar.
            if (std::min(length, their_length) <
                min_word_likeness * std::max(length, their_length)) {
                continue;
            }
            const float likeness = word.likeness(theirs);
            if (likeness >= min_word_likeness && likeness > best) {
                best = likeness;
                place = at;
            }
        }
        return {best, place};
    }

    [[nodiscard]] static float beginning(std::u32string_view typed, std::u32string_view title) {
        if (typed.size() < 2 || !title.starts_with(typed)) return 0;
        return 0.7F + 0.3F * static_cast<float>(typed.size()) / static_cast<float>(title.size());
    }

    Pattern whole_;
    std::vector<Pattern> words_;
    std::vector<Named> named_;
    std::vector<std::u32string_view> their_words_;
    std::u32string both_;
};

}  // namespace

std::size_t edit_distance(std::u32string_view one, std::u32string_view other) {
    return Pattern(one).distance(other);
}

std::vector<RankedTitle> rank_titles(std::u32string_view query, std::span<const FoldedTitle> titles,
                                     float min_likeness) {
    struct Ranked {
        RankedTitle title;
        bool of_both = false;
    };
    WantedTitle asked(query);
    std::vector<Ranked> found;
    for (std::size_t index = 0; index < titles.size(); ++index) {
        const Score score = asked.score(titles[index]);
        if (score.likeness < min_likeness) continue;
        found.push_back(
            {.title = {.index = index, .score = score.likeness}, .of_both = score.of_both});
    }
    std::ranges::stable_sort(found, [](const Ranked& one, const Ranked& other) {
        if (one.title.score != other.title.score) return one.title.score > other.title.score;
        return one.of_both && !other.of_both;
    });
    std::vector<RankedTitle> ranked;
    ranked.reserve(found.size());
    for (const Ranked& one : found) ranked.push_back(one.title);
    return ranked;
}

}  // namespace polymux::song
