#include "polymux/stream/chunk_parser.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <new>

#include "json_reason.hpp"

namespace polymux::stream {

namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

static_assert(Block::padding_bytes >= simdjson::SIMDJSON_PADDING);

constexpr std::array<std::string_view, 7> finish_words = {
    "", "stop", "length", "tool_calls", "content_filter", "function_call", ""};
constexpr std::array<std::string_view, 6> role_words = {"",       "assistant", "user",
                                                        "system", "tool",      ""};

/// Some servers send an empty text instead of null.
template <typename Enum, std::size_t N>
Enum word_of(const std::array<std::string_view, N>& words, std::string_view text) {
    if (text.empty()) return Enum::none;
    const auto found = std::find(words.begin() + 1, words.end() - 1, text);
    return static_cast<Enum>(found - words.begin());  // The last value is `other`.
}

std::string_view text_of(element value) {
    std::string_view text;
    return value.get(text) == simdjson::SUCCESS ? text : std::string_view();
}

/// The value must be an object.
object object_of(element value) {
    object members;
    return value.get(members) == simdjson::SUCCESS ? members : object();
}

array array_of(element value) {
    array items;
    return value.get(items) == simdjson::SUCCESS ? items : array();
}

/// If a name occurs twice, the last counts; `at_key` would return the first.
bool find_last(object members, std::string_view wanted, element& found) {
    bool is_there = false;
    for (const auto& [name, value] : members) {
        if (name != wanted) continue;
        found = value;
        is_there = true;
    }
    return is_there;
}

std::string words_of(element value) {
    if (value.is_string()) return std::string(text_of(value));
    std::int64_t number = 0;
    return value.get(number) == simdjson::SUCCESS ? std::to_string(number) : std::string();
}

/// Servers send `"error": null` and similar values in valid chunks.
bool says_error(element value) {
    if (value.is_object()) return object_of(value).size() > 0;
    if (value.is_array()) return array_of(value).size() > 0;
    bool flag = false;
    if (value.get(flag) == simdjson::SUCCESS) return flag;
    return value.is_number() || !text_of(value).empty();
}

constexpr std::size_t not_a_number = std::string_view::npos;

/// The end of the number at a position (RFC 8259, 6).
std::size_t number_end(std::string_view json, std::size_t at) {
    const auto is = [&](std::string_view any) {
        return at < json.size() && any.find(json[at]) != any.npos;
    };
    const auto skip_digits = [&] {
        const std::size_t begin = at;
        while (is("0123456789")) ++at;
        return at - begin;
    };
    if (is("-")) ++at;
    const bool zero = is("0");
    const std::size_t digits = skip_digits();
    if (digits == 0 || (zero && digits > 1)) return not_a_number;
    if (is(".") && (++at, skip_digits() == 0)) return not_a_number;
    if (is("eE")) {
        ++at;
        if (is("+-")) ++at;
        if (skip_digits() == 0) return not_a_number;
    }
    return at;
}

/// Replaces numbers that may exceed 64 bits by 0, because simdjson refuses them. No reader of a
/// chunk needs their values. Returns false if there is none.
bool shorten_numbers(std::string& json) {
    constexpr std::size_t max_bytes = 17;
    bool in_text = false;
    bool shortened = false;
    for (std::size_t at = 0; at < json.size(); ++at) {
        const char one = json[at];
        if (one == '"') in_text = !in_text;
        if (in_text && one == '\\') ++at;
        if (in_text || (one != '-' && (one < '0' || one > '9'))) continue;
        const std::size_t end = number_end(json, at);
        if (end == not_a_number) return false;
        const std::string_view number = std::string_view(json).substr(at, end - at);
        if (number.size() > max_bytes || number.find_first_of("eE") != number.npos) {
            json.replace(at, end - at, std::string(end - at, ' '));
            json[at] = '0';
            shortened = true;
        }
        at = end - 1;
    }
    return shortened;
}

std::string reason_of(simdjson::error_code code) {
    switch (code) {
        case simdjson::MEMALLOC:
            return "needs more memory than is available";
        case simdjson::DEPTH_ERROR:
            return "is nested too deeply (allowed 200 levels)";
        default:
            return std::string(json_reason(code));
    }
}

}  // namespace

class ChunkParser::State {
public:
    const ParsedChunk& parse(std::string_view json) {
        parsed_ = ParsedChunk();
        choice_usage_ = false;
        element root;
        auto code = read(json, root);
        if (code == simdjson::NUMBER_ERROR || code == simdjson::BIGINT_ERROR) {
            shortened_.assign(json);
            if (shorten_numbers(shortened_)) {
                shortened_.append(Block::padding_bytes, '\0');
                code = read({shortened_.data(), json.size()}, root);
            }
        }
        // Gemini sends a list with one error.
        if (code == simdjson::SUCCESS && root.is_array() && array_of(root).size() > 0 &&
            array_of(root).at(0).is_object()) {
            read_root(object_of(array_of(root).at(0).value_unsafe()));
            if (parsed_.kind == ParsedChunk::Kind::error) return parsed_;
            parsed_ = ParsedChunk();
        }
        if (code != simdjson::SUCCESS) {
            parsed_.reason = reason_of(code);
            parsed_.wrong_text = code == simdjson::STRING_ERROR;
        } else if (!root.is_object()) {
            parsed_.reason = "is JSON, but not an object";
        } else {
            parsed_.kind = ParsedChunk::Kind::chunk;
            read_root(object_of(root));
        }
        return parsed_;
    }

private:
    simdjson::error_code read(std::string_view json, element& root) {
        constexpr std::size_t smallest = 2048;
        constexpr std::size_t largest_kept = std::size_t{1} << 20U;
        constexpr std::size_t deepest = 200;
        if (parser_.capacity() > largest_kept && json.size() <= largest_kept) {
            parser_ = simdjson::dom::parser();
        }
        if (parser_.capacity() < json.size()) {
            const std::size_t capacity = std::max({json.size(), 2 * parser_.capacity(), smallest});
            if (const auto code = parser_.allocate(capacity, deepest); code != simdjson::SUCCESS)
                return code;
        }
        return parser_.parse(json.data(), json.size(), false).get(root);
    }

    void read_root(object root) {
        element response;
        element error;
        bool has_response = false;
        bool has_groq_usage = false;
        bool has_error = false;
        bool is_error = false;
        bool has_error_type = false;
        bool has_details = false;
        bool has_code = false;
        for (const auto& [name, value] : root) {
            if (name == "choices") {
                forget_choices();
                if (value.is_array()) read_choices(array_of(value));
            } else if (name == "usage") {
                parsed_.traits.has_usage = value.is_object();
            } else if (name == "x_groq") {
                element usage;
                has_groq_usage = value.is_object() && find_last(object_of(value), "usage", usage) &&
                                 usage.is_object();
            } else if (name == "response") {
                has_response = value.is_string();
                response = value;
            } else if (name == "error") {
                has_error = says_error(value);
                error = value;
            } else if (name == "object") {
                is_error = text_of(value) == "error";
            } else if (name == "detail" || name == "errors") {
                has_details = says_error(value);
                if (has_details) read_details(value);
            } else {
                if (name == "type") has_error_type = text_of(value) == "error";
                if (name == "code") has_code = says_error(value);
                // For an `event: error` whose data is the error itself, and for members next to
                // `"error": text`.
                read_error_field(name, value);
            }
        }
        // Other servers' errors have no `error`. Chunks may have the same members.
        const bool is_chunk = parsed_.has_choices || has_response;
        const bool has_message = has_code && !parsed_.error.message.empty();
        is_error = is_error || has_error_type || (!is_chunk && (has_details || has_message));
        if (has_error || is_error) parsed_.kind = ParsedChunk::Kind::error;
        if (has_error) read_error(error);
        parsed_.traits.has_usage = parsed_.traits.has_usage || has_groq_usage || choice_usage_;
        if (has_response && !parsed_.has_choices) {
            parsed_.has_choices = true;
            parsed_.traits.has_content = true;
            parsed_.content = text_of(response);
        }
    }

    void forget_choices() {
        forget_delta();
        parsed_.traits = {.has_usage = parsed_.traits.has_usage};
        parsed_.finish_reason = {};
        parsed_.has_choices = parsed_.whole_answer = false;
        parsed_.choices = 0;
        parsed_.begun = parsed_.ended = {};
        choice_usage_ = false;
    }

    void forget_delta() {
        ChunkTraits& traits = parsed_.traits;
        traits.has_content = traits.has_reasoning = traits.has_tool_calls = false;
        traits.role = ChatRole::none;
        parsed_.content = parsed_.reasoning = parsed_.role = {};
        parsed_.plain_text = true;
    }

    void read_choices(array choices) {
        parsed_.has_choices = true;
        object first;
        for (const element choice : choices) {
            ++parsed_.choices;
            if (!choice.is_object()) continue;
            const ChoiceState state = state_of(object_of(choice));
            parsed_.begun.add(state.index);
            choice_usage_ = choice_usage_ || state.has_usage;
            const auto reason = word_of<FinishReason>(finish_words, state.finish_reason);
            if (reason != FinishReason::none) parsed_.ended.add(state.index);
            const std::int64_t lowest = parsed_.traits.choice_index;
            if (lowest >= 0 && lowest <= state.index) continue;
            parsed_.traits.choice_index = state.index;
            parsed_.traits.finish_reason = reason;
            parsed_.finish_reason = state.finish_reason;
            first = object_of(choice);
        }
        if (parsed_.traits.choice_index >= 0) read_choice(first);
    }

    struct ChoiceState {
        std::int64_t index = 0;
        std::string_view finish_reason;
        bool has_usage = false;  // Moonshot sends the token counts here.
    };

    static ChoiceState state_of(object choice) {
        ChoiceState state;
        for (const auto& [name, value] : choice) {
            if (name == "index") {
                std::int64_t index = 0;
                state.index = value.get(index) == simdjson::SUCCESS
                                  ? std::clamp(index, std::int64_t{0}, std::int64_t{INT32_MAX})
                                  : 0;
            } else if (name == "finish_reason") {
                state.finish_reason = text_of(value);
            } else if (name == "usage") {
                state.has_usage = value.is_object();
            }
        }
        return state;
    }

    void read_choice(object choice) {
        for (const auto& [name, value] : choice) {
            if (name != "delta" && name != "message") continue;
            forget_delta();
            parsed_.whole_answer = name == "message" && value.is_object();
            if (value.is_object()) read_delta(object_of(value));
        }
    }

    void read_delta(object delta) {
        for (const auto& [name, value] : delta) {
            if (name == "content") {
                parsed_.traits.has_content = value.is_string();
                parsed_.content = text_of(value);
                if (value.is_array()) read_parts(array_of(value));
            } else if ((name == "reasoning_content" || name == "reasoning") && value.is_string()) {
                parsed_.traits.has_reasoning = true;
                parsed_.reasoning = text_of(value);
            } else if (name == "role") {
                parsed_.role = text_of(value);
                parsed_.traits.role = value.is_string()
                                          ? word_of<ChatRole>(role_words, parsed_.role)
                                          : ChatRole::none;
            } else if (name == "tool_calls") {
                parsed_.traits.has_tool_calls = value.is_array();
            }
        }
    }

    /// Mistral's reasoning models send a list of parts: {"type": "text", "text": ...}, and
    /// {"type": "thinking", "thinking": [text parts]}.
    void read_parts(array parts) {
        parsed_.plain_text = false;
        joined_content_.clear();
        joined_reasoning_.clear();
        for (const element part : parts) {
            if (!part.is_object()) continue;
            const object members = object_of(part);
            element value;
            if (find_last(members, "text", value) && value.is_string()) {
                joined_content_ += text_of(value);
                parsed_.traits.has_content = true;
            }
            if (find_last(members, "thinking", value) && value.is_array()) {
                read_thinking(array_of(value));
            }
        }
        parsed_.content = joined_content_;
        if (!joined_reasoning_.empty()) parsed_.reasoning = joined_reasoning_;
    }

    void read_thinking(array parts) {
        for (const element part : parts) {
            element text;
            if (!part.is_object() || !find_last(object_of(part), "text", text)) continue;
            if (!text.is_string()) continue;
            joined_reasoning_ += text_of(text);
            parsed_.traits.has_reasoning = true;
        }
    }

    /// `detail` or `errors`: a text, an error, or a list of either, not empty.
    void read_details(element details) {
        read_error(details.is_array() ? array_of(details).at(0).value_unsafe() : details);
    }

    void read_error(element error) {
        if (!error.is_object()) {
            if (!error.is_bool()) parsed_.error.message = words_of(error);
            return;
        }
        const object members = object_of(error);
        for (const auto& [name, value] : members) read_error_field(name, value);
    }

    void read_error_field(std::string_view name, element value) {
        if (name == "message" || name == "msg") parsed_.error.message = words_of(value);
        if (name == "type") parsed_.error.error_type = words_of(value);
        if (name == "code") parsed_.error.error_code = words_of(value);
        if (name == "param") parsed_.error.error_param = words_of(value);
    }

    simdjson::dom::parser parser_;
    ParsedChunk parsed_;
    bool choice_usage_ = false;
    std::string joined_content_;
    std::string joined_reasoning_;
    std::string shortened_;  // See `shorten_numbers`.
};

ChunkParser::ChunkParser() : state_(std::make_unique<State>()) {}
ChunkParser::ChunkParser(ChunkParser&&) noexcept = default;
ChunkParser& ChunkParser::operator=(ChunkParser&&) noexcept = default;
ChunkParser::~ChunkParser() = default;

const ParsedChunk& ChunkParser::parse(std::string_view json) {
    return state_->parse(json);
}

std::string_view to_string(FinishReason reason) noexcept {
    return finish_words[static_cast<std::size_t>(reason)];
}

std::string_view to_string(ChatRole role) noexcept {
    return role_words[static_cast<std::size_t>(role)];
}

}  // namespace polymux::stream
