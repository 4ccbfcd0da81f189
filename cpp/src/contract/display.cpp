#include "contract/display.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ascii.hpp"
#include "contract/utf8.hpp"
#include "polymux/contract/path_text.hpp"
#include "polymux/request/json_text.hpp"

namespace polymux::contract {

namespace {

constexpr std::size_t shown_characters = 40;
constexpr std::string_view ellipsis = "\xE2\x80\xA6";

std::string number_text(const Number& number) {
    json::Buffer buffer;
    if (number.is_integer && number.fits) {
        json::append_integer(buffer, number.integer);
    } else if (number.is_integer || !json::append_number(buffer, number.value)) {
        return number.is_integer ? "an integer beyond 64 bits" : "an invalid number";
    }
    return std::string(buffer.view());
}

}  // namespace

std::string display_value(const ValueSource& value) {
    switch (value.type()) {
        case type_string:
            return quoted_text(value.text_head(shown_characters + 1));
        case type_integer:
        case type_number:
            return number_text(value.number());
        case type_boolean:
            return value.boolean() ? "true" : "false";
        case type_array:
            return "an array of " + std::to_string(value.size()) +
                   (value.size() == 1 ? " item" : " items");
        case type_object:
            return "an object";
        case type_file:
            return "a file";
        case type_null:
            return "null";
    }
    return "a value";
}

std::string quoted_text(std::string_view utf8) {
    const std::string_view start = first_characters(utf8, shown_characters);
    json::Buffer buffer;
    json::append_utf8(buffer, start);
    std::string result(buffer.view());
    if (start.size() < utf8.size()) result.insert(result.size() - 1, ellipsis);
    return result;
}

std::string quoted_url(std::string_view utf8) {
    const std::size_t authority = utf8.find("://");
    if (authority == std::string_view::npos) return quoted_text(utf8);
    const std::size_t begin = authority + 3;
    const std::size_t end = std::min(utf8.find_first_of("/?#", begin), utf8.size());
    const std::size_t at = utf8.substr(0, end).rfind('@');
    if (at == std::string_view::npos || at < begin) return quoted_text(utf8);
    std::string masked(utf8.substr(0, begin));
    masked += "***";
    masked += utf8.substr(at);
    return quoted_text(masked);
}

std::string display_name(std::string_view name) {
    constexpr std::size_t max_length = 64;
    const bool plain =
        !name.empty() && name.size() <= max_length &&
        std::ranges::all_of(name, [](char c) { return is_word(c) || c == '-' || c == '.'; });
    return plain ? std::string(name) : quoted_text(name);
}

void append_member(std::string& path, std::string_view name) {
    if (!path.empty()) path += '.';
    path += display_name(name);
}

void append_item(std::string& path, std::size_t index) {
    path += '[' + std::to_string(index) + ']';
}

std::string truncated(std::string text, std::size_t max_bytes) {
    if (text.size() <= max_bytes) return text;
    std::size_t end = max_bytes - ellipsis.size();
    while (end > 0 && continues_character(text[end])) --end;
    text.resize(end);
    return text.append(ellipsis);
}

std::string_view media_type(Encoding encoding) {
    return encoding == Encoding::json ? "application/json" : "multipart/form-data";
}

std::string type_names(std::uint16_t types) {
    constexpr std::array<std::string_view, 8> names = {"a string",      "an integer", "a number",
                                                       "true or false", "an array",   "an object",
                                                       "a file",        "null"};
    std::string text;
    for (unsigned bit = 0; bit < names.size(); ++bit) {
        if ((unsigned{types} >> bit & 1U) == 0) continue;
        if (!text.empty()) text += " or ";
        text += names[bit];
    }
    return text;
}

std::string with_unit(const Field& field, std::string text) {
    if (!field.unit.empty()) text += ' ' + std::string(field.unit);
    return text;
}

std::string plain_number(double value) {
    json::Buffer buffer;
    if (value == std::floor(value) && std::abs(value) < 1e15) {
        json::append_integer(buffer, static_cast<std::int64_t>(value));
    } else if (!json::append_number(buffer, value)) {
        return "a number";
    }
    return std::string(buffer.view());
}

std::string range_text(const Field& field) {
    const bool both = field.minimum && field.maximum;
    if (both && !field.above_minimum && !field.below_maximum) {
        return with_unit(
            field, "from " + plain_number(*field.minimum) + " to " + plain_number(*field.maximum));
    }
    std::string text;
    if (field.minimum) {
        text = (field.above_minimum ? "above " : "at least ") + plain_number(*field.minimum);
    }
    if (field.maximum) {
        if (!text.empty()) text += " and ";
        text += (field.below_maximum ? "below " : "at most ") + plain_number(*field.maximum);
    }
    return with_unit(field, text);
}

}  // namespace polymux::contract
