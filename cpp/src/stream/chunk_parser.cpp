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

template <typename Enum, std::size_t N>
Enum word_of(const std::array<std::string_view, N>& words, std::string_view text) {
    const auto found = std::find(words.begin() + 1, words.end() - 1, text);
    return static_cast<Enum>(found - words.begin());  // The last is `other`.
}

std::string_view text_of(element value) {
    std::string_view text;
    return value.get(text) == simdjson::SUCCESS ? text : std::string_view();
}

/// Of a value that is known to be one.
object object_of(element value) {
    object members;
    return value.get(members) == simdjson::SUCCESS ? members : object();
}

array array_of(element value) {
    array items;
    return value.get(items) == simdjson::SUCCESS ? items : array();
}

std::string words_of(element value) {
    if (value.is_string()) return std::string(text_of(value));
    std::int64_t number = 0;
    return value.get(number) == simdjson::SUCCESS ? std::to_string(number) : std::string();
}

/// Servers send `"error": null` and the like in good chunks.
bool says_error(element value) {
    object members;
    if (value.get(members) == simdjson::SUCCESS) return members.size() > 0;
    return value.is_array() || value.is_number() || !text_of(value).empty();
}

std::string reason_of(simdjson::error_code code) {
    switch (code) {
        case simdjson::MEMALLOC:
            return "needs more memory than there is";
        case simdjson::DEPTH_ERROR:
            return "is nested too deep";
        default:
            return std::string(json_reason(code));
    }
}

}  // namespace

class ChunkParser::State {
public:
    const ParsedChunk& parse(std::string_view json) {
        parsed_ = ParsedChunk();
        element root;
        if (const auto code = read(json, root); code != simdjson::SUCCESS) {
            parsed_.reason = reason_of(code);
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
        if (parser_.capacity() > largest_kept && json.size() <= largest_kept) {
            parser_ = simdjson::dom::parser();
        }
        if (parser_.capacity() < json.size()) {
            const std::size_t capacity = std::max({json.size(), 2 * parser_.capacity(), smallest});
            if (const auto code = parser_.allocate(capacity); code != simdjson::SUCCESS)
                return code;
        }
        return parser_.parse(json.data(), json.size(), false).get(root);
    }

    void read_root(object root) {
        element response;
        bool has_response = false;
        bool has_groq_usage = false;
        for (const auto& [name, value] : root) {
            if (name == "choices") {
                forget_choices();
                if (value.is_array()) read_choices(array_of(value));
            } else if (name == "usage") {
                parsed_.traits.has_usage = value.is_object();
            } else if (name == "x_groq" && value.is_object()) {
                element usage;
                has_groq_usage =
                    value.at_key("usage").get(usage) == simdjson::SUCCESS && usage.is_object();
            } else if (name == "response" && value.is_string()) {
                has_response = true;
                response = value;
            } else if (name == "error" && says_error(value)) {
                read_error(value);
            } else if (name == "object" && text_of(value) == "error") {
                read_error(root);
            } else if (parsed_.kind == ParsedChunk::Kind::chunk) {
                read_error_field(name,
                                 value);  // Of an `event: error` whose data is the error itself.
            }
        }
        parsed_.traits.has_usage = parsed_.traits.has_usage || has_groq_usage;
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
        for (const element choice : choices) {
            if (parsed_.choices++ == 0 && choice.is_object()) read_choice(object_of(choice));
        }
    }

    void read_choice(object choice) {
        parsed_.traits.choice_index = 0;
        for (const auto& [name, value] : choice) {
            if (name == "delta" || name == "message") {
                forget_delta();
                parsed_.whole_answer = name == "message" && value.is_object();
                if (value.is_object()) read_delta(object_of(value));
            } else if (name == "index") {
                std::int64_t index = 0;
                if (value.get(index) == simdjson::SUCCESS) {
                    parsed_.traits.choice_index =
                        std::clamp(index, std::int64_t{0}, std::int64_t{INT32_MAX});
                }
            } else if (name == "finish_reason") {
                parsed_.finish_reason = text_of(value);
                parsed_.traits.finish_reason =
                    value.is_string() ? word_of<FinishReason>(finish_words, parsed_.finish_reason)
                                      : FinishReason::none;
            }
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
            for (const auto& [name, value] : members) {
                if (name == "text") {
                    joined_content_ += text_of(value);
                    parsed_.traits.has_content = true;
                } else if (name == "thinking" && value.is_array()) {
                    read_thinking(array_of(value));
                }
            }
        }
        parsed_.content = joined_content_;
        if (!joined_reasoning_.empty()) parsed_.reasoning = joined_reasoning_;
    }

    void read_thinking(array parts) {
        for (const element part : parts) {
            element text;
            if (part.at_key("text").get(text) != simdjson::SUCCESS || !text.is_string()) continue;
            joined_reasoning_ += text_of(text);
            parsed_.traits.has_reasoning = true;
        }
    }

    void read_error(element error) {
        if (error.is_object()) {
            read_error(object_of(error));
        } else {
            parsed_.kind = ParsedChunk::Kind::error;
            parsed_.error.message = words_of(error);
        }
    }

    void read_error(object error) {
        parsed_.kind = ParsedChunk::Kind::error;
        for (const auto& [name, value] : error) read_error_field(name, value);
    }

    void read_error_field(std::string_view name, element value) {
        if (name == "message") parsed_.error.message = words_of(value);
        if (name == "type") parsed_.error.error_type = words_of(value);
        if (name == "code") parsed_.error.error_code = words_of(value);
        if (name == "param") parsed_.error.error_param = words_of(value);
    }

    simdjson::dom::parser parser_;
    ParsedChunk parsed_;
    std::string joined_content_;
    std::string joined_reasoning_;
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
