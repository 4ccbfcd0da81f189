#include "polymux/stream/chat_decoder.hpp"

#include <algorithm>
#include <utility>

#include "stream/chat_template.hpp"
#include "stream/json_hole.hpp"

namespace polymux::stream {

namespace {

constexpr std::size_t max_message_bytes = 1000;
constexpr std::size_t max_wait_bytes = 1024;
constexpr std::string_view done_mark = "[DONE]";

/// The start of a text for messages, not cut inside a character.
std::string shortened(std::string_view text) {
    if (text.size() <= max_message_bytes) return std::string(text);
    std::size_t end = max_message_bytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    return std::string(text.substr(0, end)) + "...";
}

StreamEnd failure(std::string_view data, const ParsedChunk& parsed, std::uint64_t offset_bytes) {
    StreamEnd end = parsed.error;
    end.state = StreamState::failed;
    end.offset_bytes = offset_bytes;
    end.message = shortened(end.message.empty() ? data : std::string_view(end.message));
    return end;
}

StreamEnd undecodable(std::string message, std::uint64_t offset_bytes) {
    return {.state = StreamState::undecodable,
            .message = std::move(message),
            .offset_bytes = offset_bytes};
}

std::string_view without_leading_blanks(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
    return text;
}

bool is_done(std::string_view data) {
    return without_leading_blanks(data).starts_with(done_mark);
}

}  // namespace

ChatDecoder::ChatDecoder(const ChatDecoderOptions& options)
    : splitter_({.max_event_bytes = options.max_event_bytes, .error_field = true}),
      templates_(options.templates ? std::make_unique<TemplateSet>() : nullptr) {}
ChatDecoder::ChatDecoder(ChatDecoder&&) noexcept = default;
ChatDecoder& ChatDecoder::operator=(ChatDecoder&&) noexcept = default;
ChatDecoder::~ChatDecoder() = default;

void ChatDecoder::feed(std::string_view bytes, ChunkParser& parser, ChatBatch& batch) {
    if (ended_ || bytes.empty()) return;
    splitter_.append(bytes);
    if (shape_ == Shape::unknown) look_at_beginning(batch);
    if (shape_ == Shape::events) read_events(parser, batch);
    if (shape_ == Shape::json && splitter_.ahead().size() > splitter_.max_event_bytes()) {
        end(undecodable("the response is too large (allowed " +
                            std::to_string(splitter_.max_event_bytes()) + " bytes)",
                        splitter_.offset_bytes()),
            batch);
    }
}

/// Events begin with a field's name, a colon or an empty line. Other data is not a stream.
void ChatDecoder::look_at_beginning(ChatBatch& batch) {
    const std::string_view ahead = splitter_.ahead();
    const std::size_t blank = std::min(ahead.find_first_not_of(" \t\r\n"), ahead.size());
    // Skip blank lines as they arrive. Blanks before a document may be its indentation.
    const std::size_t lines = ahead.substr(0, blank).find_last_of("\r\n") + 1;
    const std::size_t indented = blank - lines;
    splitter_.skip(lines);
    if (blank == ahead.size() && indented < max_wait_bytes) return;
    const char first = blank == ahead.size() ? ' ' : ahead[blank];
    if (first == '<') {
        end(undecodable("the response is a web page, not a stream of events. Check that the URL is "
                        "the base URL of an API",
                        splitter_.offset_bytes()),
            batch);
        return;
    }
    shape_ = first == '{' || first == '[' ? Shape::json : Shape::events;
    if (shape_ == Shape::json) splitter_.skip(indented);
}

void ChatDecoder::read_events(ChunkParser& parser, ChatBatch& batch) {
    SseEvent event;
    while (!ended_ && !read_ahead(batch)) {
        switch (splitter_.next(event)) {
            case SseSplitter::Found::event:
                read_event(event, parser, batch);
                break;
            case SseSplitter::Found::nothing:
                return;
            case SseSplitter::Found::too_long:
                end(undecodable("an event of the stream is too large (allowed " +
                                    std::to_string(splitter_.max_event_bytes()) + " bytes)",
                                splitter_.offset_bytes()),
                    batch);
                return;
        }
    }
}

/// Reads whole events that match the latest template, without a line search. Returns true if the
/// remaining bytes may begin another match, which only more bytes can decide.
bool ChatDecoder::read_ahead(ChatBatch& batch) {
    const ChunkTemplate* const known = templates_ ? templates_->latest() : nullptr;
    if (known == nullptr) return false;
    const std::string_view ahead = splitter_.ahead();
    const char* at = ahead.data();
    const char* const end = at + ahead.size();
    Match match;
    while (at < end) {
        match = known->match_event({at, static_cast<std::size_t>(end - at)});
        const std::size_t bytes =
            match.end == nullptr ? 0 : static_cast<std::size_t>(match.end - at);
        if (bytes == 0 || bytes > splitter_.max_event_bytes()) break;
        const std::string_view json(at + known->lead_bytes(),
                                    bytes - known->lead_bytes() - known->trail_bytes());
        add_matched(known->traits(), json, match, batch);
        at = match.end;
    }
    if (at > ahead.data()) {
        templates_->hit();
        splitter_.skip(static_cast<std::size_t>(at - ahead.data()));
    }
    // Avoids comparing a long prefix repeatedly.
    const std::size_t max_bytes = std::min(max_wait_bytes, splitter_.max_event_bytes());
    return at < end && match.cut_off && static_cast<std::size_t>(end - at) <= max_bytes;
}

void ChatDecoder::read_event(const SseEvent& event, ChunkParser& parser, ChatBatch& batch) {
    if (is_done(event.data)) {
        end({.state = StreamState::finished, .message = {}, .offset_bytes = event.offset_bytes},
            batch);
        return;
    }
    if (without_leading_blanks(event.data).empty()) return;
    mended_ = half_lost_ = false;
    Match match;
    const bool plain = event.single_line && event.type.empty();
    if (const ChunkTemplate* known =
            templates_ && plain ? templates_->find(event.data, match) : nullptr) {
        add_matched(known->traits(), event.data, match, batch);
        return;
    }
    const ParsedChunk& parsed = parse(event.data, parser);
    if (parsed.kind == ParsedChunk::Kind::error || event.type == "error") {
        end(failure(event.data, parsed, event.offset_bytes), batch);
    } else if (parsed.kind == ParsedChunk::Kind::invalid) {
        end(undecodable("the data of a stream event " + parsed.reason, event.offset_bytes), batch);
    } else {
        add_parsed(parsed, event.data, batch);
        if (plain && !parsed.whole_answer) learn(event, parsed);
    }
}

/// Joins surrogates split between chunks first, in bytes that no reader has seen yet.
const ParsedChunk& ChatDecoder::parse(std::string_view json, ChunkParser& parser) {
    const ParsedChunk& parsed = parser.parse(json);
    if (!parsed.wrong_text) return parsed;
    if (!mender_) mender_ = std::make_unique<SurrogateMender>();
    char* const begin = splitter_.block()->data() + (json.data() - splitter_.block()->data());
    mended_ = mender_->mend(begin, json.size());
    half_lost_ = mender_->lost_half();
    return mended_ ? parser.parse(json) : parsed;
}

/// A first half of a surrogate pair without its second half becomes U+FFFD before the next text, or
/// at the end of the answer.
void ChatDecoder::add_lost_half(std::string_view text, const ChunkTraits& traits,
                                ChatBatch& batch) {
    if (!mender_) return;
    const bool follows = !text.empty() || traits.finish_reason != FinishReason::none;
    if (!mended_ && follows && traits.choice_index == half_choice_)
        half_lost_ = mender_->drop_half();
    if (half_lost_) batch.text_.append("\xEF\xBF\xBD");
    if (mended_) half_choice_ = traits.choice_index;
}

/// Also stores the bytes around the data, to match the whole next event at once.
void ChatDecoder::learn(const SseEvent& event, const ParsedChunk& parsed) {
    if (!templates_) return;
    const char* const begin = event.data.data();
    const char* const behind = begin + event.data.size();
    const bool spaced = begin[-1] == ' ';  // At least a field's name precedes the data.
    const bool crlf = behind[0] == '\r' && behind[1] == '\n';
    if (templates_->learn(event.data, parsed,
                          spaced ? "data: " : "data:", crlf ? "\r\n\r\n" : "\n\n")) {
        ++counts_.learned;
    }
}

void ChatDecoder::add_record(const ChunkTraits& traits, std::string_view json, ChatBatch& batch) {
    const Block* const block = splitter_.block().get();
    batch.keep(splitter_.block());
    batch.records_.push_back(
        {.block = block,
         .json_offset = static_cast<std::uint32_t>(json.data() - block->data()),
         .json_bytes = static_cast<std::uint32_t>(json.size()),
         .traits = traits});
}

void ChatDecoder::add_matched(const ChunkTraits& traits, std::string_view json, const Match& match,
                              ChatBatch& batch) {
    add_record(traits, json, batch);
    ++counts_.matched;
    if (traits.choice_index >= 0) {  // Templates are made only from chunks with one choice.
        begun_.add(traits.choice_index);
        if (traits.finish_reason != FinishReason::none) ended_choices_.add(traits.choice_index);
        if (!match.content.empty()) streamed_.add(traits.choice_index);
    }
    mended_ = half_lost_ = false;
    ChatRecord& record = batch.records_.back();
    const std::size_t begin = batch.text_.size_bytes();
    add_lost_half(match.content, traits, batch);
    if (match.has_escapes || half_lost_) {
        append_unescaped(batch.text_, match.content);
        set_text(record, begin, batch);
    } else if (!match.content.empty()) {
        record.text_offset =
            static_cast<std::uint32_t>(match.content.data() - record.block->data());
        record.text_bytes = static_cast<std::uint32_t>(match.content.size());
    }
}

void ChatDecoder::add_parsed(const ParsedChunk& parsed, std::string_view json, ChatBatch& batch) {
    add_record(parsed.traits, json, batch);
    ++counts_.parsed;
    begun_.add(parsed.begun);
    ended_choices_.add(parsed.ended);
    const std::size_t begin = batch.text_.size_bytes();
    add_lost_half(parsed.content, parsed.traits, batch);
    const std::int64_t index = std::max(parsed.traits.choice_index, std::int64_t{0});
    // Some servers repeat the whole text in the last chunk.
    const bool repeats = parsed.whole_answer && streamed_.contains(index);
    if (!repeats) batch.text_.append(parsed.content);
    if (!parsed.whole_answer && !parsed.content.empty()) streamed_.add(index);
    set_text(batch.records_.back(), begin, batch);
}

/// Sets the record's text to the bytes written to the batch since `begin`.
void ChatDecoder::set_text(ChatRecord& record, std::size_t begin, const ChatBatch& batch) {
    record.text_in_batch = true;
    record.text_offset = static_cast<std::uint32_t>(begin);
    record.text_bytes = static_cast<std::uint32_t>(batch.text_.size_bytes() - begin);
}

void ChatDecoder::finish(ChunkParser& parser, ChatBatch& batch) {
    if (ended_) return;
    if (shape_ == Shape::json) {
        read_plain_json(parser, batch);
        return;
    }
    const std::string_view rest = splitter_.unfinished_data();
    // If the stream has several choices, all of them must have ended.
    const bool whole = !ended_choices_.empty() && ended_choices_.holds(begun_);
    if (whole || is_done(rest)) {
        end({.state = StreamState::finished,
             .message = {},
             .offset_bytes = splitter_.total_bytes()},
            batch);
        return;
    }
    if (const ParsedChunk& parsed = parser.parse(rest); parsed.kind == ParsedChunk::Kind::error) {
        end(failure(rest, parsed, splitter_.offset_bytes()), batch);
        return;
    }
    const std::uint64_t total = splitter_.total_bytes();
    end({.state = StreamState::interrupted,
         .message = total == 0 ? std::string("the response is empty")
                               : "the stream was cut off after " + std::to_string(total) +
                                     " bytes, before the end of the response: neither a "
                                     "finish_reason nor [DONE] was received",
         .offset_bytes = total},
        batch);
}

/// A server that does not stream returns one object.
void ChatDecoder::read_plain_json(ChunkParser& parser, ChatBatch& batch) {
    const std::string_view json = splitter_.ahead();
    const std::uint64_t offset = splitter_.offset_bytes();
    const ParsedChunk& parsed = parse(json, parser);
    if (parsed.kind == ParsedChunk::Kind::error) {
        end(failure(json, parsed, offset), batch);
    } else if (parsed.kind == ParsedChunk::Kind::invalid) {
        end(undecodable(
                "the response is neither a stream of events nor a JSON object: it " + parsed.reason,
                offset),
            batch);
    } else if (!parsed.has_choices) {
        end(undecodable("the response is JSON without \"choices\": " + shortened(json), offset),
            batch);
    } else {
        add_parsed(parsed, json, batch);
        end({.state = StreamState::finished,
             .message = {},
             .offset_bytes = splitter_.total_bytes()},
            batch);
    }
}

void ChatDecoder::end(StreamEnd end, ChatBatch& batch) {
    ended_ = true;
    batch.end_ = std::move(end);
}

}  // namespace polymux::stream
