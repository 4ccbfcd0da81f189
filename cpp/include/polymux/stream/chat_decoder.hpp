// Decodes the bytes of a chat stream into chunks.
//
//     ChunkParser parser;                      // one for each thread, for any number of streams
//     ChatDecoder decoder;
//     ChatBatch batch;
//     decoder.feed(received, parser, batch);   // whenever bytes arrive
//     decoder.finish(parser, batch);           // after the last byte
//     for (const ChatRecord& record : batch.records()) use(batch.text(record));
//     if (batch.end()) ...
//
// Supports streams of the OpenAI API and of freellm (`{"response": "..."}`), and whole responses as
// plain JSON from servers that do not stream. Each chunk is fully validated: either by the parser,
// or by a byte comparison with a parsed chunk that may differ only in a few strings and numbers,
// each of which is validated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "polymux/stream/chat_batch.hpp"
#include "polymux/stream/chunk_parser.hpp"
#include "polymux/stream/sse.hpp"

namespace polymux::stream {

class SurrogateMender;
class TemplateSet;
struct Match;

struct ChatDecoderOptions {
    /// Maximum size of an event, and of a response in plain JSON. At most 1 GiB.
    std::size_t max_event_bytes = std::size_t{16} << 20U;
    /// If false, the parser reads every chunk. The results are the same.
    bool templates = true;
};

/// How the chunks were read so far.
struct ChatDecoderCounts {
    std::uint64_t matched = 0;  ///< Chunks that matched a template.
    std::uint64_t parsed = 0;   ///< Chunks read by the parser.
    std::uint64_t learned = 0;  ///< Templates created.
};

/// Not thread-safe: one thread at a time. May throw std::bad_alloc and nothing else.
class ChatDecoder {
public:
    explicit ChatDecoder(const ChatDecoderOptions& options = {});
    ChatDecoder(ChatDecoder&&) noexcept;
    ChatDecoder& operator=(ChatDecoder&&) noexcept;
    ~ChatDecoder();

    /// Reads bytes and adds the completed chunks to the batch. Ignores bytes after the end.
    void feed(std::string_view bytes, ChunkParser& parser, ChatBatch& batch);

    /// Marks the end of the bytes. Adds the end to the batch, unless it was added before.
    void finish(ChunkParser& parser, ChatBatch& batch);

    bool ended() const noexcept { return ended_; }
    const ChatDecoderCounts& counts() const noexcept { return counts_; }

private:
    enum class Shape : std::uint8_t { unknown, events, json };

    void look_at_beginning(ChatBatch& batch);
    void read_events(ChunkParser& parser, ChatBatch& batch);
    bool read_ahead(ChatBatch& batch);
    void read_event(const SseEvent& event, ChunkParser& parser, ChatBatch& batch);
    void read_plain_json(ChunkParser& parser, ChatBatch& batch);
    const ParsedChunk& parse(std::string_view json, ChunkParser& parser);
    void learn(const SseEvent& event, const ParsedChunk& parsed);
    void add_matched(const ChunkTraits& traits, std::string_view json, const Match& match,
                     ChatBatch& batch);
    void add_parsed(const ParsedChunk& parsed, std::string_view json, ChatBatch& batch);
    void add_record(const ChunkTraits& traits, std::string_view json, ChatBatch& batch);
    void add_lost_half(std::string_view text, const ChunkTraits& traits, ChatBatch& batch);
    static void set_text(ChatRecord& record, std::size_t begin, const ChatBatch& batch);
    void end(StreamEnd end, ChatBatch& batch);

    SseSplitter splitter_;
    std::unique_ptr<TemplateSet> templates_;
    std::unique_ptr<SurrogateMender> mender_;  // Created at the first lone surrogate.
    ChatDecoderCounts counts_;
    Shape shape_ = Shape::unknown;
    ChoiceSet begun_;
    ChoiceSet ended_choices_;
    ChoiceSet streamed_;      // Choices with text in a `delta`.
    bool mended_ = false;     // The current chunk.
    bool half_lost_ = false;  // Before the current chunk: half of a surrogate pair.
    std::int64_t half_choice_ = 0;
    bool ended_ = false;
};

}  // namespace polymux::stream
