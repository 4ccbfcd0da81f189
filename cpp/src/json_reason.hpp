// What is wrong with JSON that simdjson refused, in words that follow the name of the text.
#pragma once

#include <simdjson.h>

#include <string_view>

namespace polymux {

/// `is not valid UTF-8`, ...; how deep is too deep, and what else a caller knows better, is for it
/// to say.
inline std::string_view json_reason(simdjson::error_code code) {
    switch (code) {
        case simdjson::EMPTY:
            return "is empty";
        case simdjson::UTF8_ERROR:
            return "is not valid UTF-8";
        case simdjson::NUMBER_ERROR:
        case simdjson::BIGINT_ERROR:
            return "holds a number that JSON does not have or that is out of range";
        case simdjson::STRING_ERROR:
            return "holds a text with a wrong escape or half a surrogate pair";
        case simdjson::UNESCAPED_CHARS:
            return "holds a control character inside a text";
        case simdjson::UNCLOSED_STRING:
            return "ends inside a text";
        default:
            return "is not valid JSON";
    }
}

}  // namespace polymux
