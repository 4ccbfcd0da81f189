// One chunk of a chat stream, or a whole answer, read by a full JSON parser.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "polymux/request/json_text.hpp"
#include "polymux/stream/chat_batch.hpp"

namespace polymux::stream {

/// What a parsed document says. Texts point into the parser and its buffers: good until it parses
/// again.
struct ParsedChunk {
    enum class Kind : std::uint8_t {
        chunk,    ///< An object that is not an error.
        error,    ///< An object with an `error`, or whose `object` is "error".
        invalid,  ///< Not JSON, or JSON that is no object.
    };

    Kind kind = Kind::invalid;
    ChunkTraits traits;
    std::string_view content;
    std::string_view reasoning;
    std::string_view finish_reason;  ///< In its own words.
    std::string_view role;
    std::size_t choices = 0;
    bool has_choices = false;   ///< `choices` is there, or freellm's `response`.
    bool whole_answer = false;  ///< Its first choice has a `message` in the place of a `delta`.
    bool plain_text = true;     ///< `content` and `reasoning` are JSON strings, not lists of parts.
    std::string reason;         ///< Of `invalid`: why, as the end of a sentence.
    StreamEnd
        error;  ///< Message, type, code and param of `error`; of others what stands at their top.
};

/// Holds the memory that parsing needs; one serves any number of streams of its thread.
/// Everything is validated: UTF-8, numbers, escapes, depth (1,024 levels). Of a key that stands
/// twice in an object the last value counts, as for Python's json.
class ChunkParser {
public:
    ChunkParser();
    ChunkParser(ChunkParser&&) noexcept;
    ChunkParser& operator=(ChunkParser&&) noexcept;
    ~ChunkParser();

    /// `Block::padding_bytes` readable bytes must follow the text. May throw std::bad_alloc.
    const ParsedChunk& parse(std::string_view json);

private:
    class State;
    std::unique_ptr<State> state_;
};

/// The words of a finish reason and of a role; empty for `none` and `other`.
std::string_view to_string(FinishReason reason) noexcept;
std::string_view to_string(ChatRole role) noexcept;

}  // namespace polymux::stream
