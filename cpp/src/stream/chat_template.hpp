// Templates: match chunks by comparing bytes instead of parsing.
//
// After a chunk was parsed, the bytes around its changing values are stored. A later chunk with the
// same bytes there, and a valid string or number in each gap, is a valid document with the same
// meaning. Any other chunk goes to the parser, so nothing is assumed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/stream/chat_batch.hpp"
#include "polymux/stream/chunk_parser.hpp"
#include "stream/chunk_tokens.hpp"

namespace polymux::stream {

/// Result of a template match.
struct Match {
    const char* end = nullptr;      ///< End of the matched bytes; null if it did not match.
    std::string_view content = {};  ///< Raw text: escapes are not resolved.
    bool has_escapes = false;
    bool cut_off = false;  ///< All available bytes matched, but the event is incomplete.
};

/// One kind of chunk.
class ChunkTemplate {
public:
    /// Stores a chunk and its tokens. `lead` and `trail` are the bytes around its JSON in the
    /// stream.
    void learn(std::string_view json, const std::vector<Token>& tokens, const ChunkTraits& traits,
               std::string_view lead, std::string_view trail);

    /// Turns the values that differ in a chunk of the same kind into holes. Returns false for a
    /// chunk of another kind.
    bool widen(std::string_view json, const std::vector<Token>& tokens, const ChunkTraits& traits);

    /// Matches lead, JSON and trail at the start of the bytes; zeros must follow them.
    Match match_event(std::string_view bytes) const noexcept;
    /// Matches JSON that ends at the end of the bytes.
    Match match_json(std::string_view json) const noexcept;

    const ChunkTraits& traits() const noexcept { return traits_; }
    std::size_t lead_bytes() const noexcept { return lead_bytes_; }
    std::size_t trail_bytes() const noexcept { return trail_bytes_; }

private:
    /// The value between two literals.
    enum class Hole : std::uint8_t { string, number, content };

    /// A literal, and the hole after it.
    struct Part {
        std::uint32_t offset = 0;
        std::uint32_t bytes = 0;
        Hole hole = Hole::string;
    };

    void build();
    bool same_kind(std::string_view json, const std::vector<Token>& tokens) const;
    static const char* read_hole(Hole hole, const char* at, Match& match) noexcept;
    Match match(const char* at, const char* end, std::size_t skipped_lead,
                std::size_t skipped_trail) const noexcept;

    std::string example_;  // The example chunk, with lead and trail.
    std::vector<Token> tokens_;
    std::vector<Part> parts_;  // The last part has no hole.
    std::string literals_;
    std::size_t lead_bytes_ = 0;
    std::size_t trail_bytes_ = 0;
    ChunkTraits traits_;
};

/// The templates of one stream: a few, because choices, reasoning, text and tool calls differ.
class TemplateSet {
public:
    /// The template that matched last, and most likely matches next; null before the first exists.
    const ChunkTemplate* latest() const noexcept {
        return used_ == 0 ? nullptr : &templates_[latest_];
    }

    /// Tries all templates, the latest first.
    const ChunkTemplate* find(std::string_view json, Match& match) noexcept;

    /// Adds a chunk that no template matched. Returns true if a template was added or changed.
    bool learn(std::string_view json, const ParsedChunk& parsed, std::string_view lead,
               std::string_view trail);

    void hit() noexcept { misses_ = 0; }

private:
    static constexpr std::size_t capacity = 8;
    static constexpr int patience = 8;  // Consecutive misses.

    std::array<ChunkTemplate, capacity> templates_;
    std::size_t used_ = 0;
    std::size_t next_ = 0;  // Index of the template to replace next.
    std::size_t latest_ = 0;
    int misses_ = 0;
    std::vector<Token> scratch_;
};

}  // namespace polymux::stream
