// Chunks that are known: recognised by comparing bytes instead of parsing.
//
// After a chunk was parsed, the bytes around its changing values are remembered. A later chunk with
// the same bytes there, and a valid string or number in each place between, is a valid document
// that means the same; anything else goes to the parser, so nothing is assumed.
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

/// What a template found.
struct Match {
    const char* end = nullptr;      ///< Behind what was read; null where it did not match.
    std::string_view content = {};  ///< As it stands: escapes are not resolved.
    bool has_escapes = false;
    bool cut_off =
        false;  ///< The bytes matched as far as they went, which is not to the event's end.
};

/// One kind of chunk.
class ChunkTemplate {
public:
    /// From a chunk and its tokens. `lead` and `trail` stand around its JSON in the stream.
    void learn(std::string_view json, const std::vector<Token>& tokens, const ChunkTraits& traits,
               std::string_view lead, std::string_view trail);

    /// Opens the values in which a chunk of the same kind differs from the one learned from. False
    /// where it is of another kind.
    bool widen(std::string_view json, const std::vector<Token>& tokens, const ChunkTraits& traits);

    /// Reads lead, JSON and trail at the beginning of the bytes; zeros follow them.
    Match match_event(std::string_view bytes) const noexcept;
    /// Reads JSON that ends with the bytes.
    Match match_json(std::string_view json) const noexcept;

    const ChunkTraits& traits() const noexcept { return traits_; }
    std::size_t lead_bytes() const noexcept { return lead_bytes_; }
    std::size_t trail_bytes() const noexcept { return trail_bytes_; }

private:
    /// What stands between two literals.
    enum class Hole : std::uint8_t { string, number, content };

    /// A literal, and the hole behind it.
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

    std::string example_;  // The chunk learned from, with lead and trail.
    std::vector<Token> tokens_;
    std::vector<Part> parts_;  // The last one has no hole.
    std::string literals_;
    std::size_t lead_bytes_ = 0;
    std::size_t trail_bytes_ = 0;
    ChunkTraits traits_;
};

/// The templates of one stream: a few, since choices, reasoning, text and tool calls differ.
class TemplateSet {
public:
    /// The template that matched last, most often the next too; null before the first is learned.
    const ChunkTemplate* latest() const noexcept {
        return used_ == 0 ? nullptr : &templates_[latest_];
    }

    /// Tries all, the latest first.
    const ChunkTemplate* find(std::string_view json, Match& match) noexcept;

    /// A chunk that no template matched. True where something was learned from it.
    bool learn(std::string_view json, const ParsedChunk& parsed, std::string_view lead,
               std::string_view trail);

    void hit() noexcept { misses_ = 0; }

private:
    static constexpr std::size_t capacity = 8;
    static constexpr int patience = 8;  // Misses without a hit between them.

    std::array<ChunkTemplate, capacity> templates_;
    std::size_t used_ = 0;
    std::size_t next_ = 0;  // The one to be replaced.
    std::size_t latest_ = 0;
    int misses_ = 0;
    std::vector<Token> scratch_;
};

}  // namespace polymux::stream
