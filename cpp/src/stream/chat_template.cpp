#include "stream/chat_template.hpp"

#include <cstring>

#include "stream/json_hole.hpp"
#include "stream/scan.hpp"

namespace polymux::stream {

namespace {

bool same(const ChunkTraits& left, const ChunkTraits& right) {
    return left.choice_index == right.choice_index && left.finish_reason == right.finish_reason &&
           left.role == right.role && left.has_content == right.has_content &&
           left.has_reasoning == right.has_reasoning &&
           left.has_tool_calls == right.has_tool_calls && left.has_usage == right.has_usage;
}

/// True if no byte up to the end terminates or changes a string.
bool reaches(const char* at, const char* end) {
    unsigned bits = 0;
    return find_special(at, bits) == end;
}

std::string_view text_of(std::string_view json, const Token& token) {
    return json.substr(token.offset, token.bytes);
}

}  // namespace

void ChunkTemplate::learn(std::string_view json, const std::vector<Token>& tokens,
                          const ChunkTraits& traits, std::string_view lead,
                          std::string_view trail) {
    example_.assign(lead).append(json).append(trail);
    lead_bytes_ = lead.size();
    trail_bytes_ = trail.size();
    tokens_ = tokens;
    traits_ = traits;
    build();
}

/// Builds literals and holes from the example.
void ChunkTemplate::build() {
    parts_.clear();
    literals_.clear();
    std::size_t literal = 0;
    const auto close_literal = [this, &literal](std::size_t end, Hole hole) {
        parts_.push_back({.offset = static_cast<std::uint32_t>(literals_.size()),
                          .bytes = static_cast<std::uint32_t>(end - literal),
                          .hole = hole});
        literals_.append(example_, literal, end - literal);
    };
    for (const Token& token : tokens_) {
        if (token.use == TokenUse::fixed || token.use == TokenUse::free) continue;
        const std::size_t begin = lead_bytes_ + token.offset;
        close_literal(begin, token.use == TokenUse::content ? Hole::content
                             : token.is_string              ? Hole::string
                                                            : Hole::number);
        literal = begin + token.bytes;
    }
    close_literal(example_.size(), Hole::string);
}

/// Whether only the texts of tokens differ.
bool ChunkTemplate::same_kind(std::string_view json, const std::vector<Token>& tokens) const {
    if (tokens.size() != tokens_.size()) return false;
    const std::string_view example = std::string_view(example_).substr(
        lead_bytes_, example_.size() - lead_bytes_ - trail_bytes_);
    std::size_t ours = 0;
    std::size_t theirs = 0;
    for (std::size_t index = 0; index < tokens.size(); ++index) {
        const Token& old_token = tokens_[index];
        const Token& new_token = tokens[index];
        if (old_token.is_string != new_token.is_string ||
            example.substr(ours, old_token.offset - ours) !=
                json.substr(theirs, new_token.offset - theirs)) {
            return false;
        }
        if (old_token.use == TokenUse::fixed &&
            text_of(example, old_token) != text_of(json, new_token)) {
            return false;
        }
        ours = old_token.offset + old_token.bytes;
        theirs = new_token.offset + new_token.bytes;
    }
    return example.substr(ours) == json.substr(theirs);
}

bool ChunkTemplate::widen(std::string_view json, const std::vector<Token>& tokens,
                          const ChunkTraits& traits) {
    if (!same(traits, traits_) || !same_kind(json, tokens)) return false;
    const std::string_view example = std::string_view(example_).substr(lead_bytes_);
    bool widened = false;
    for (std::size_t index = 0; index < tokens.size(); ++index) {
        Token& token = tokens_[index];
        if (token.use != TokenUse::free || text_of(example, token) == text_of(json, tokens[index]))
            continue;
        token.use = TokenUse::open;
        widened = true;
    }
    if (widened) build();
    return widened;
}

const char* ChunkTemplate::read_hole(Hole hole, const char* at, Match& match) noexcept {
    if (hole == Hole::number) return read_number(at);
    const StringBody body = read_string_body(at);
    if (hole == Hole::content && body.end != nullptr) {
        match.content = {at, static_cast<std::size_t>(body.end - at)};
        match.has_escapes = body.has_escapes;
    }
    return body.end;
}

Match ChunkTemplate::match(const char* at, const char* end, std::size_t skipped_lead,
                           std::size_t skipped_trail) const noexcept {
    Match found;
    const char* literal = literals_.data() + skipped_lead;
    const char* const last_literal = literals_.data() + literals_.size() - skipped_trail;
    for (const Part& part : parts_) {
        const bool last = &part == &parts_.back();
        const char* const literal_end =
            last ? last_literal : literals_.data() + part.offset + part.bytes;
        const auto bytes = static_cast<std::size_t>(literal_end - literal);
        const auto left = static_cast<std::size_t>(end - at);
        if (left < bytes) {
            // The splitter decides line ends, because a CR alone may be one.
            const bool in_trail = last && left + trail_bytes_ >= bytes;
            return {.cut_off = !in_trail && std::memcmp(at, literal, left) == 0};
        }
        if (std::memcmp(at, literal, bytes) != 0) return {};
        at += bytes;
        literal = literal_end;
        if (last) break;
        const char* const hole = at;
        at = read_hole(part.hole, at, found);
        if (at == nullptr || at > end) return {.cut_off = reaches(hole, end)};
    }
    found.end = at;
    return found;
}

Match ChunkTemplate::match_event(std::string_view bytes) const noexcept {
    return match(bytes.data(), bytes.data() + bytes.size(), 0, 0);
}

Match ChunkTemplate::match_json(std::string_view json) const noexcept {
    const char* const end = json.data() + json.size();
    const Match found = match(json.data(), end, lead_bytes_, trail_bytes_);
    return found.end == end ? found : Match{};
}

const ChunkTemplate* TemplateSet::find(std::string_view json, Match& match) noexcept {
    for (std::size_t step = 0; step < used_; ++step) {
        const std::size_t index = (latest_ + step) % used_;
        match = templates_[index].match_json(json);
        if (match.end == nullptr) continue;
        latest_ = index;
        misses_ = 0;
        return &templates_[index];
    }
    return nullptr;
}

bool TemplateSet::learn(std::string_view json, const ParsedChunk& parsed, std::string_view lead,
                        std::string_view trail) {
    if (misses_ >= patience) return false;
    ++misses_;
    if (parsed.choices > 1 || !parsed.has_choices || !parsed.plain_text) return false;
    if (!list_tokens(json, scratch_)) return false;
    std::size_t contents = 0;
    for (const Token& token : scratch_) contents += token.use == TokenUse::content ? 1U : 0U;
    if (contents != (parsed.traits.has_content ? 1U : 0U)) return false;
    for (std::size_t index = 0; index < used_; ++index) {
        if (!templates_[index].widen(json, scratch_, parsed.traits)) continue;
        latest_ = index;
        return true;
    }
    templates_[next_].learn(json, scratch_, parsed.traits, lead, trail);
    latest_ = next_;
    next_ = (next_ + 1) % capacity;
    used_ = used_ < capacity ? used_ + 1 : capacity;
    return true;
}

}  // namespace polymux::stream
