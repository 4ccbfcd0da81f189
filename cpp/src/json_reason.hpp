// Text for JSON errors of simdjson, to follow the name of the document.
#pragma once

#include <simdjson.h>

#include <string_view>

namespace polymux {

/// `is not valid UTF-8`, ... The caller handles errors with more context, such as the depth limit.
inline std::string_view json_reason(simdjson::error_code code) {
    switch (code) {
        case simdjson::EMPTY:
            return "is empty";
        case simdjson::UTF8_ERROR:
            return "is not valid UTF-8";
        case simdjson::NUMBER_ERROR:
        case simdjson::BIGINT_ERROR:
            return "contains a number that is invalid in JSON or out of range";
        case simdjson::STRING_ERROR:
            return "contains a string with an invalid escape or a lone surrogate";
        case simdjson::UNESCAPED_CHARS:
            return "contains a control character inside a string";
        case simdjson::UNCLOSED_STRING:
            return "ends inside a string";
        default:
            return "is not valid JSON";
    }
}

}  // namespace polymux
