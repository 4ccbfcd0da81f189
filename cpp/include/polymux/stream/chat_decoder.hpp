// A chat stream's bytes into chunks.
//
//     ChunkParser parser;                      // one for each thread, for any number of streams
//     ChatDecoder decoder;
//     ChatBatch batch;
//     decoder.feed(received, parser, batch);   // as often as bytes come
//     decoder.finish(parser, batch);           // when no more will come
//     for (const ChatRecord& record : batch.records()) use(batch.text(record));
//     if (batch.end()) ...
//
// Streams of the OpenAI kind and of freellm (`{"response": "..."}`); also a whole answer as plain
// JSON, which servers send that do not stream. Each chunk is validated in full: by the parser, or
// by being equal, byte for byte, to a chunk that was parsed before in everything but a few strings
// and numbers, each of which is valid where it stands.
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
    /// Longest event, and longest answer in plain JSON. At most 1 GiB.
    std::size_t max_event_bytes = std::size_t{16} << 20U;
    /// Off: the parser reads every chunk. The results are the same.
    bool templates = true;
};

/// How the chunks were read so far.
struct ChatDecoderCounts {
    std::uint64_t matched = 0;  ///< Chunks that a template matched.
    std::uint64_t parsed = 0;   ///< Chunks that the parser read.
    std::uint64_t learned = 0;  ///< Templates made.
};

/// Not thread-safe: one thread at a time. May throw std::bad_alloc and nothing else.
class ChatDecoder {
public:
    explicit ChatDecoder(const ChatDecoderOptions& options = {});
    ChatDecoder(ChatDecoder&&) noexcept;
    ChatDecoder& operator=(ChatDecoder&&) noexcept;
    ~ChatDecoder();

    /// Reads bytes and adds the chunks that became whole to the batch. After the end it ignores
    /// them.
    void feed(std::string_view bytes, ChunkParser& parser, ChatBatch& batch);

    /// Says that no more bytes come; the batch gets its end, unless it had it before.
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
    static void set_text(ChatRecord& record, std::size_t begin, const ChatBatch& batch);
    void end(StreamEnd end, ChatBatch& batch);

    SseSplitter splitter_;
    std::unique_ptr<TemplateSet> templates_;
    std::unique_ptr<SurrogateMender> mender_;  // From the first half of a character on.
    ChatDecoderCounts counts_;
    Shape shape_ = Shape::unknown;
    ChoiceSet begun_;
    ChoiceSet ended_choices_;
    bool ended_ = false;
};

}  // namespace polymux::stream
