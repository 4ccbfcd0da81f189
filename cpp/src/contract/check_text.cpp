#include "contract/check_text.hpp"

#include <algorithm>
#include <optional>

#include "ascii.hpp"
#include "contract/display.hpp"
#include "polymux/text_parsing.hpp"

namespace polymux::contract {

namespace {

constexpr std::size_t max_url_length = 8192;
constexpr std::size_t max_name_length = 256;
constexpr std::size_t max_choice_length = 256;

bool is_control(char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

std::string quoted_choices(const Field& field) {
    std::string text;
    for (const std::string_view choice : field.choices) {
        text += (text.empty() ? "" : ", ") + quoted_text(choice);
    }
    return text;
}

std::string check_choice(const Field& field, const ValueSource& value) {
    const std::string_view text = value.text_head(max_choice_length);
    if (std::ranges::find(field.choices, text) != field.choices.end()) return {};
    return '=' + display_value(value) + ": must be one of " + quoted_choices(field);
}

std::string check_length(const Field& field, const ValueSource& value) {
    if (field.min_length == 0 && field.max_length == std::numeric_limits<std::size_t>::max()) {
        return {};
    }
    const std::size_t limit = std::max(
        field.min_length,
        field.max_length == std::numeric_limits<std::size_t>::max() ? 0 : field.max_length + 1);
    const std::size_t length = value.text_length(limit);
    if (length < field.min_length) {
        if (length == 0) return ": must not be empty";
        return '=' + display_value(value) + ": must have at least " +
               std::to_string(field.min_length) + " characters";
    }
    if (length > field.max_length) {
        return '=' + display_value(value) + ": must have at most " +
               std::to_string(field.max_length) + " characters";
    }
    return {};
}

bool starts_with_word(std::string_view text, std::string_view word) {
    return text.size() >= word.size() &&
           std::ranges::equal(text.substr(0, word.size()), word, {}, lower);
}

std::string scheme_names(const Field& field) {
    std::string text;
    for (const std::string_view scheme : field.schemes) {
        text += (text.empty() ? "" : " or ") + std::string(scheme) +
                (scheme == "data" ? ":image/..." : "://...");
    }
    return text;
}

bool has_accepted_scheme(const Field& field, std::string_view text) {
    return std::ranges::any_of(field.schemes, [text](std::string_view scheme) {
        if (!starts_with_word(text, scheme)) return false;
        const std::string_view rest = text.substr(scheme.size());
        if (scheme == "data") return starts_with_word(rest, ":image/");
        constexpr std::string_view slashes = "://";
        if (!rest.starts_with(slashes) || rest.size() == slashes.size()) return false;
        return rest[slashes.size()] != '/' && rest[slashes.size()] != '?' &&
               rest[slashes.size()] != '#';
    });
}

/// Checks only the format of a URL. SSRF protection checks its destination later.
std::string check_address(const Field& field, const ValueSource& value) {
    const std::string_view text = value.text_head(max_url_length + 1);
    const auto refused = [&text](const std::string& why) {
        return '=' + quoted_url(text) + ": " + why;
    };
    if (text.empty()) return ": must not be empty";
    if (!has_accepted_scheme(field, text)) return refused("must be a URL: " + scheme_names(field));
    if (starts_with_word(text, "data:")) return {};
    if (value.text_length(max_url_length + 1) > max_url_length) {
        return refused("must have at most " + std::to_string(max_url_length) + " characters");
    }
    if (std::ranges::any_of(text, [](char c) { return is_control(c) || c == ' '; })) {
        return refused("must not contain spaces or control characters");
    }
    return {};
}

std::string check_number_text(const Field& field, const ValueSource& value,
                              std::optional<double> read, const char* form) {
    if (!read) return '=' + display_value(value) + ": must be " + form;
    if ((field.minimum && *read < *field.minimum) || (field.maximum && *read > *field.maximum)) {
        return '=' + display_value(value) + ": must be " + range_text(field);
    }
    return {};
}

bool are_languages(std::string_view text) {
    bool after_plus = true;
    for (const char c : text) {
        if (c == '+' ? after_plus : !is_word(c)) return false;
        after_plus = c == '+';
    }
    return !after_plus;
}

std::string check_format(const Field& field, const ValueSource& value) {
    // Most texts have no format and need no further check.
    if (field.format == Format::none) return {};
    const std::string_view text = value.text_head(max_name_length + 1);
    switch (field.format) {
        case Format::none:
            return {};
        case Format::bitrate:
            return check_number_text(field, value, parse_bits_per_second(text),
                                     "a bitrate such as 128000 or \"128k\"");
        case Format::time:
            return check_number_text(
                field, value, parse_time(text),
                "a time: seconds such as 93.5, or \"[HH:]MM:SS[.mmm]\" such as \"1:33.5\"");
        case Format::resolution:
            if (parse_resolution(text)) return {};
            return '=' + display_value(value) +
                   ": must be \"best\", or a height of 144 to 4320 lines such as \"720p\" or "
                   "\"720\"";
        case Format::languages:
            if (text.size() <= max_name_length && are_languages(text)) return {};
            return '=' + display_value(value) +
                   ": must be language codes joined by '+', such as \"eng\" or \"deu+fra\"";
        case Format::name:
            if (text.empty()) return ": must not be empty";
            if (value.text_length(max_name_length + 1) <= max_name_length &&
                std::ranges::none_of(text, is_control))
                return {};
            return '=' + display_value(value) +
                   ": must have at most 256 characters and no control characters";
    }
    return {};
}

}  // namespace

std::string check_text(const Field& field, const ValueSource& value) {
    if (!field.choices.empty()) return check_choice(field, value);
    std::string message = check_length(field, value);
    if (message.empty() && field.url) message = check_address(field, value);
    if (message.empty()) message = check_format(field, value);
    return message;
}

}  // namespace polymux::contract
