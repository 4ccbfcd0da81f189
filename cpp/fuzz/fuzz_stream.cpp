// Any bytes as a chat stream, in reads of any size. With and without templates, whole and in
// pieces, the chunks, texts and ends must be equal. The first bytes select the read sizes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "check.hpp"
#include "polymux/stream/chat_decoder.hpp"

namespace {

using polymux::stream::ChatBatch;
using polymux::stream::ChatDecoder;
using polymux::stream::ChatDecoderOptions;
using polymux::stream::ChatRecord;
using polymux::stream::ChunkParser;

/// Everything that a consumer can observe, as one text.
class Account {
public:
    void take(ChatBatch& batch) {
        for (const ChatRecord& record : batch.records()) add(batch, record);
        if (batch.end()) {
            const auto& end = *batch.end();
            POLYMUX_FUZZ_CHECK(!ended_);
            ended_ = true;
            seen_ += std::to_string(static_cast<int>(end.state)) + end.message + end.error_type +
                     end.error_code + end.error_param + std::to_string(end.offset_bytes);
        }
        batch.clear();
    }

    const std::string& finish() const {
        POLYMUX_FUZZ_CHECK(ended_);
        return seen_;
    }

private:
    void add(const ChatBatch& batch, const ChatRecord& record) {
        POLYMUX_FUZZ_CHECK(!ended_);
        const auto& traits = record.traits;
        POLYMUX_FUZZ_CHECK(traits.has_content || batch.text(record).empty());
        seen_ += ChatBatch::json(record);
        seen_ += '|';
        seen_ += batch.text(record);
        for (const auto value :
             {static_cast<std::int64_t>(traits.finish_reason),
              static_cast<std::int64_t>(traits.role), traits.choice_index,
              std::int64_t{traits.has_content}, std::int64_t{traits.has_reasoning},
              std::int64_t{traits.has_tool_calls}, std::int64_t{traits.has_usage}}) {
            seen_ += std::to_string(value) + ",";
        }
    }

    std::string seen_;
    bool ended_ = false;
};

std::string decode(std::string_view stream, std::string_view sizes,
                   const ChatDecoderOptions& options) {
    static ChunkParser parser;
    ChatDecoder decoder(options);
    ChatBatch batch;
    Account account;
    std::size_t turn = 0;
    while (!stream.empty()) {
        const std::size_t size =
            sizes.empty()
                ? stream.size()
                : std::size_t{1} + static_cast<unsigned char>(sizes[turn++ % sizes.size()]);
        decoder.feed(stream.substr(0, size), parser, batch);
        stream.remove_prefix(size < stream.size() ? size : stream.size());
        account.take(batch);
    }
    decoder.finish(parser, batch);
    account.take(batch);
    return account.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t choices = 4;
    if (size < choices) return 0;
    const std::string input(data, data + size);
    const std::string_view sizes = std::string_view(input).substr(0, choices);
    const std::string_view stream = std::string_view(input).substr(choices);
    constexpr std::size_t limit = 4096;
    const std::string expected = decode(stream, {}, {.max_event_bytes = limit, .templates = false});
    POLYMUX_FUZZ_CHECK(decode(stream, {}, {.max_event_bytes = limit}) == expected);
    POLYMUX_FUZZ_CHECK(decode(stream, sizes, {.max_event_bytes = limit}) == expected);
    POLYMUX_FUZZ_CHECK(decode(stream, sizes, {.max_event_bytes = limit, .templates = false}) ==
                       expected);
    return 0;
}
