#include "stream/chunk_tokens.hpp"

#include <algorithm>

namespace polymux::stream {

namespace {

constexpr std::size_t max_document_bytes = std::size_t{16} << 10U;
constexpr std::size_t max_tokens = 200;
constexpr int deepest = 12;

/// The object or list of a chunk that a value belongs to.
enum class Place : std::uint8_t { root, choices, choice, delta, calls, call, function, elsewhere };

/// Meaning of a key's value, and how to handle it if it is a text or a number.
struct Meaning {
    Place inside = Place::elsewhere;
    TokenUse use = TokenUse::free;
};

Meaning meaning_in_root(std::string_view key) {
    if (key == "choices") return {.inside = Place::choices, .use = TokenUse::fixed};
    if (key == "response") return {.use = TokenUse::content};
    if (key == "obfuscation") return {.use = TokenUse::open};
    const bool decides = key == "object" || key == "error" || key == "usage" || key == "x_groq";
    return {.use = decides ? TokenUse::fixed : TokenUse::free};
}

Meaning meaning_in_delta(std::string_view key) {
    if (key == "content") return {.use = TokenUse::content};
    if (key == "reasoning" || key == "reasoning_content") return {.use = TokenUse::open};
    if (key == "tool_calls") return {.inside = Place::calls, .use = TokenUse::fixed};
    return {.use = key == "role" ? TokenUse::fixed : TokenUse::free};
}

Meaning meaning_of(Place place, std::string_view key) {
    switch (place) {
        case Place::root:
            return meaning_in_root(key);
        case Place::choice:
            if (key == "delta" || key == "message")
                return {.inside = Place::delta, .use = TokenUse::fixed};
            return {.use = key == "index" || key == "finish_reason" ? TokenUse::fixed
                                                                    : TokenUse::free};
        case Place::delta:
            return meaning_in_delta(key);
        case Place::call:
            if (key == "function") return {.inside = Place::function};
            return {};
        case Place::function:
            return {.use = key == "arguments" ? TokenUse::open : TokenUse::free};
        case Place::choices:
        case Place::calls:
        case Place::elsewhere:
            break;
    }
    return {};
}

Place place_of_items(Place place) {
    if (place == Place::choices) return Place::choice;
    if (place == Place::calls) return Place::call;
    return Place::elsewhere;
}

class Walker {
public:
    Walker(std::string_view json, std::vector<Token>& tokens) : json_(json), tokens_(tokens) {}

    bool walk() {
        blanks();
        return value({.inside = Place::root, .use = TokenUse::fixed}, 0);
    }

private:
    void blanks() {
        while (at_ < json_.size() && static_cast<unsigned char>(json_[at_]) <= ' ') ++at_;
    }

    char peek() const { return at_ < json_.size() ? json_[at_] : '\0'; }

    /// Skips a grammar character and the whitespace around it.
    bool pass(char character) {
        blanks();
        if (peek() != character) return false;
        ++at_;
        blanks();
        return true;
    }

    bool value(Meaning meaning, int depth) {
        if (depth > deepest || tokens_.size() > max_tokens) return false;
        switch (peek()) {
            case '{':
                return object(meaning.inside, depth);
            case '[':
                return list(meaning.inside, depth);
            case '"': {
                const std::string_view body = string();
                add(body, meaning.use, true);
                return true;
            }
            case 't':
            case 'f':
            case 'n':
                while (peek() >= 'a' && peek() <= 'z') ++at_;
                return true;
            default:
                return number(meaning.use);
        }
    }

    bool object(Place place, int depth) {
        const std::size_t first_key = keys_.size();
        pass('{');
        for (bool more = peek() == '"'; more; more = pass(',')) {
            const std::string_view key = string();
            const bool twice = std::find(keys_.begin() + static_cast<std::ptrdiff_t>(first_key),
                                         keys_.end(), key) != keys_.end();
            if (twice || key.find('\\') != std::string_view::npos || !pass(':')) return false;
            keys_.push_back(key);
            if (!value(meaning_of(place, key), depth + 1)) return false;
        }
        keys_.resize(first_key);
        return pass('}');
    }

    bool list(Place place, int depth) {
        const Meaning meaning = {.inside = place_of_items(place)};
        pass('[');
        for (bool more = peek() != ']'; more; more = pass(',')) {
            if (!value(meaning, depth + 1)) return false;
        }
        return pass(']');
    }

    std::string_view string() {
        const std::size_t begin = ++at_;
        while (at_ < json_.size() && json_[at_] != '"') at_ += json_[at_] == '\\' ? 2U : 1U;
        return json_.substr(begin, at_++ - begin);
    }

    bool number(TokenUse use) {
        const std::size_t begin = at_;
        while (at_ < json_.size() &&
               std::string_view("+-.0123456789eE").find(json_[at_]) != std::string_view::npos) {
            ++at_;
        }
        add(json_.substr(begin, at_ - begin), use == TokenUse::fixed ? use : TokenUse::free, false);
        return at_ > begin;
    }

    void add(std::string_view text, TokenUse use, bool is_string) {
        tokens_.push_back({.offset = static_cast<std::size_t>(text.data() - json_.data()),
                           .bytes = text.size(),
                           .use = use,
                           .is_string = is_string});
    }

    std::string_view json_;
    std::vector<Token>& tokens_;
    std::vector<std::string_view> keys_;
    std::size_t at_ = 0;
};

}  // namespace

bool list_tokens(std::string_view json, std::vector<Token>& tokens) {
    tokens.clear();
    return json.size() <= max_document_bytes && Walker(json, tokens).walk();
}

}  // namespace polymux::stream
