// Output of a chat stream decoder: chunks as plain records over shared bytes, and how the stream
// ended. One thread fills a batch; another reads it after it was passed on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/request/json_text.hpp"
#include "polymux/stream/block.hpp"

namespace polymux::stream {

enum class FinishReason : std::uint8_t {
    none,  ///< null or absent
    stop,
    length,
    tool_calls,
    content_filter,
    function_call,
    other,  ///< Any other text; the chunk's JSON contains it.
};

enum class ChatRole : std::uint8_t {
    none,
    assistant,
    user,
    system,
    tool,
    other,
};

/// Properties that all chunks of one template share.
struct ChunkTraits {
    std::int64_t choice_index = -1;  ///< The lowest index in `choices`; -1 without choices.
    FinishReason finish_reason = FinishReason::none;
    ChatRole role = ChatRole::none;
    bool has_content = false;  ///< `delta.content` is text; false for null and absent.
    bool has_reasoning = false;
    bool has_tool_calls = false;
    bool has_usage = false;
};

/// One chunk. The JSON is in a block that the batch holds. The text is in the same block, or in the
/// batch's memory if it contained escapes.
struct ChatRecord {
    const Block* block = nullptr;
    std::uint32_t json_offset = 0;
    std::uint32_t json_bytes = 0;
    std::uint32_t text_offset = 0;
    std::uint32_t text_bytes = 0;
    bool text_in_batch = false;
    ChunkTraits traits;
};

enum class StreamState : std::uint8_t {
    open,         ///< More may follow.
    finished,     ///< `[DONE]`, or the end of the bytes after a finish_reason.
    interrupted,  ///< The bytes ended before the response was complete.
    undecodable,  ///< Not a stream of chat chunks: invalid JSON, an event over the limit, HTML.
    failed,       ///< The server reported an error.
};

/// How a stream ended.
struct StreamEnd {
    StreamState state = StreamState::open;
    std::string message;             ///< A readable message; the server's text if it `failed`.
    std::uint64_t offset_bytes = 0;  ///< Position in bytes from the start of the stream.
    std::string error_type = {};     ///< The server's `type`; empty if missing.
    std::string error_code = {};     ///< The server's `code`; a number becomes its digits.
    std::string error_param = {};    ///< The server's `param`.
};

/// Chunks in order, then possibly the end. Reusable: `clear` keeps the memory.
class ChatBatch {
public:
    const std::vector<ChatRecord>& records() const noexcept { return records_; }
    const std::optional<StreamEnd>& end() const noexcept { return end_; }
    bool empty() const noexcept { return records_.empty() && !end_; }

    /// `delta.content` as UTF-8; empty if missing.
    std::string_view text(const ChatRecord& record) const noexcept {
        const char* const base = record.text_in_batch ? text_.view().data() : record.block->data();
        return {base + record.text_offset, record.text_bytes};
    }
    /// The chunk as received: the data of its event.
    static std::string_view json(const ChatRecord& record) noexcept {
        return {record.block->data() + record.json_offset, record.json_bytes};
    }
    /// A reference to the record's block, which keeps its JSON alive beyond the batch.
    BlockRef block_of(const ChatRecord& record) const noexcept;

    /// Removes all content and releases the blocks.
    void clear() noexcept;

private:
    friend class ChatDecoder;

    /// Call `keep` with a block before adding records of that block.
    void keep(const BlockRef& block) {
        if (blocks_.empty() || blocks_.back().get() != block.get()) blocks_.push_back(block);
    }

    std::vector<ChatRecord> records_;
    json::Buffer text_;
    std::vector<BlockRef> blocks_;
    std::optional<StreamEnd> end_;
};

/// The text and counts of the chunks that the consumer received.
class Transcript {
public:
    void add(std::string_view text, const ChunkTraits& traits) {
        ++chunks_;
        if (traits.choice_index > 0) return;
        text_.append(text);
        if (traits.finish_reason != FinishReason::none) finish_reason_ = traits.finish_reason;
    }

    /// Contents of the first choice, joined.
    std::string_view text() const noexcept { return text_.view(); }
    std::uint64_t chunks() const noexcept { return chunks_; }
    FinishReason finish_reason() const noexcept { return finish_reason_; }

private:
    json::Buffer text_;
    std::uint64_t chunks_ = 0;
    FinishReason finish_reason_ = FinishReason::none;
};

}  // namespace polymux::stream
