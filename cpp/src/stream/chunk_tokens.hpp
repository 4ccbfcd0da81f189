// The values of a chunk and where they stand, for learning templates from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace polymux::stream {

/// What a template may do with a value.
enum class TokenUse : std::uint8_t {
    fixed,    ///< Decides what the chunk means: another value makes another template.
    free,     ///< Means nothing to the decoder: open as soon as it was seen to change.
    open,     ///< Known to change with every chunk: open from the first one on.
    content,  ///< The text itself: open, and handed out.
};

/// A string's body without its quotes, or a number.
struct Token {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    TokenUse use = TokenUse::free;
    bool is_string = false;
};

/// The strings and numbers of a document that a parser has found valid, keys left out, in their
/// order. False for documents that no template is made of: long, deep, of many values, or with keys
/// that are escaped or stand twice in an object.
bool list_tokens(std::string_view json, std::vector<Token>& tokens);

}  // namespace polymux::stream
