// One chunk of a chat stream, or a whole response, read by a full JSON parser.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "polymux/request/json_text.hpp"
#include "polymux/stream/chat_batch.hpp"

namespace polymux::stream {

/// A set of a stream's choices, by index.
class ChoiceSet {
public:
    /// Indexes above the maximum, which real servers do not reach, count as the maximum.
    void add(std::int64_t index) noexcept {
        bits_ |= std::uint64_t{1} << (index < 63 ? index : 63);
    }
    void add(ChoiceSet others) noexcept { bits_ |= others.bits_; }
    bool contains(std::int64_t index) const noexcept {
        return (bits_ >> (index < 63 ? index : 63) & 1U) != 0;
    }
    bool empty() const noexcept { return bits_ == 0; }
    bool holds(ChoiceSet others) const noexcept { return (others.bits_ & ~bits_) == 0; }

private:
    std::uint64_t bits_ = 0;
};

/// Content of a parsed document. Texts point into the parser and its buffers; they are valid until
/// the next parse.
struct ParsedChunk {
    enum class Kind : std::uint8_t {
        chunk,    ///< An object that is not an error.
        error,    ///< An object with an `error`, or whose `object` is "error".
        invalid,  ///< Not JSON, or JSON that is not an object.
    };

    Kind kind = Kind::invalid;
    ChunkTraits traits;  ///< Those of the choice with the lowest index, as the texts below.
    std::string_view content;
    std::string_view reasoning;
    std::string_view finish_reason;  ///< Unchanged text.
    ChoiceSet begun;                 ///< Choices in the chunk.
    ChoiceSet ended;                 ///< Choices with a finish reason.
    std::string_view role;
    std::size_t choices = 0;
    bool has_choices = false;   ///< `choices` is present, or freellm's `response`.
    bool whole_answer = false;  ///< The choice has a `message` instead of a `delta`.
    bool plain_text = true;     ///< `content` and `reasoning` are JSON strings, not lists of parts.
    bool wrong_text = false;    ///< For `invalid`: an invalid escape, or a lone surrogate.
    std::string reason;         ///< For `invalid`: the reason, as the end of a sentence.
    StreamEnd error;            ///< Members of `error`, or of the top level.
};

/// Holds the memory that parsing needs; one parser serves any number of streams of its thread.
/// Validates everything: UTF-8, numbers, escapes, depth (200 levels). If a key occurs twice in an
/// object, the last value counts, as in Python's json.
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

/// Text of a finish reason and of a role; empty for `none` and `other`.
std::string_view to_string(FinishReason reason) noexcept;
std::string_view to_string(ChatRole role) noexcept;

}  // namespace polymux::stream
