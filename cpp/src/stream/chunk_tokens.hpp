// The values of a chunk with their positions, for making templates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace polymux::stream {

/// How a template may treat a value.
enum class TokenUse : std::uint8_t {
    fixed,    ///< Changes the meaning of the chunk: another value needs another template.
    free,     ///< Unused by the decoder: becomes a hole after its first change.
    open,     ///< Changes with every chunk: a hole from the start.
    content,  ///< The text itself: a hole whose content is returned.
};

/// A string's body without its quotes, or a number.
struct Token {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    TokenUse use = TokenUse::free;
    bool is_string = false;
};

/// Lists the strings and numbers of a valid document in order, without keys. Returns false for
/// documents that are unsuitable for templates: long, deep, with many values, or with escaped or
/// duplicate keys.
bool list_tokens(std::string_view json, std::vector<Token>& tokens);

}  // namespace polymux::stream
