// One chunk of a chat stream, or a whole answer, read by a full JSON parser.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "polymux/request/json_text.hpp"
#include "polymux/stream/chat_batch.hpp"

namespace polymux::stream {

/// A set of a stream's choices, by their numbers.
class ChoiceSet {
public:
    /// Numbers above the last of the set, which no server comes to, count as that one.
    void add(std::int64_t index) noexcept {
        bits_ |= std::uint64_t{1} << (index < 63 ? index : 63);
    }
    void add(ChoiceSet others) noexcept { bits_ |= others.bits_; }
    bool empty() const noexcept { return bits_ == 0; }
    bool holds(ChoiceSet others) const noexcept { return (others.bits_ & ~bits_) == 0; }

private:
    std::uint64_t bits_ = 0;
};

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
    ChoiceSet begun;                 ///< Choices that the chunk speaks of.
    ChoiceSet ended;                 ///< Those of them that have a finish reason.
    std::string_view role;
    std::size_t choices = 0;
    bool has_choices = false;   ///< `choices` is there, or freellm's `response`.
    bool whole_answer = false;  ///< Its first choice has a `message` in the place of a `delta`.
    bool plain_text = true;     ///< `content` and `reasoning` are JSON strings, not lists of parts.
    bool wrong_text = false;    ///< Of `invalid`: a wrong escape, or half a surrogate pair.
    std::string reason;         ///< Of `invalid`: why, as the end of a sentence.
    StreamEnd
        error;  ///< Message, type, code and param of `error`; of others what stands at their top.
};

/// Holds the memory that parsing needs; one serves any number of streams of its thread.
/// Everything is validated: UTF-8, numbers, escapes, depth (200 levels). Of a key that stands
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
