// Chat streams for tests, and a decoder's results as comparable values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/stream/chat_decoder.hpp"

namespace polymux::test {

/// Everything that a consumer can observe of a stream.
struct Seen {
    std::vector<std::string> chunks;  // One line for each: its JSON, text and traits.
    std::string text;
    std::string end;

    bool operator==(const Seen&) const = default;
};

struct Decoded {
    Seen seen;
    stream::StreamEnd end;
    stream::ChatDecoderCounts counts;
};

inline std::string describe(const stream::ChatBatch& batch, const stream::ChatRecord& record) {
    const stream::ChunkTraits& traits = record.traits;
    std::string line =
        std::string(stream::ChatBatch::json(record)) + "|" + std::string(batch.text(record)) + "|";
    for (const long long value :
         {static_cast<long long>(traits.choice_index), static_cast<long long>(traits.finish_reason),
          static_cast<long long>(traits.role), static_cast<long long>(traits.has_content),
          static_cast<long long>(traits.has_reasoning),
          static_cast<long long>(traits.has_tool_calls),
          static_cast<long long>(traits.has_usage)}) {
        line += std::to_string(value) + ",";
    }
    return line;
}

/// Feeds the bytes in steps of that size; 0 is all at once.
inline Decoded decode(std::string_view bytes, std::size_t step = 0,
                      const stream::ChatDecoderOptions& options = {}) {
    stream::ChunkParser parser;
    stream::ChatDecoder decoder(options);
    stream::ChatBatch batch;
    stream::Transcript transcript;
    Decoded decoded;
    const auto drain = [&] {
        for (const stream::ChatRecord& record : batch.records()) {
            decoded.seen.chunks.push_back(describe(batch, record));
            transcript.add(batch.text(record), record.traits);
        }
        if (batch.end()) decoded.end = *batch.end();
        batch.clear();
    };
    for (std::size_t at = 0; at < bytes.size(); at += step == 0 ? bytes.size() : step) {
        decoder.feed(bytes.substr(at, step == 0 ? bytes.size() : step), parser, batch);
        drain();
    }
    decoder.finish(parser, batch);
    drain();
    decoded.counts = decoder.counts();
    decoded.seen.text = std::string(transcript.text());
    decoded.seen.end = std::to_string(static_cast<int>(decoded.end.state)) + decoded.end.message +
                       decoded.end.error_type + decoded.end.error_code + decoded.end.error_param +
                       "@" + std::to_string(decoded.end.offset_bytes);
    return decoded;
}

/// A chunk as OpenAI sends it; `content` is already escaped.
inline std::string chunk(std::string_view content, std::string_view finish_reason = "null",
                         std::string_view extra = "") {
    return R"({"id":"chatcmpl-9","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o",)"
           R"("system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":")" +
           std::string(content) + R"("},"logprobs":null,"finish_reason":)" +
           std::string(finish_reason) + "}]" + std::string(extra) + "}";
}

inline std::string event(std::string_view json) {
    return "data: " + std::string(json) + "\n\n";
}

}  // namespace polymux::test
