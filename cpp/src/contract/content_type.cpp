#include <algorithm>
#include <string>

#include "ascii.hpp"
#include "contract/display.hpp"
#include "polymux/contract/check.hpp"

namespace polymux::contract {

namespace {

/// Returns the text before the next semicolon outside quotes, and removes it from `rest`.
std::string_view next_part(std::string_view& rest) {
    bool quoted = false;
    std::size_t end = 0;
    for (; end < rest.size() && (quoted || rest[end] != ';'); ++end) {
        if (rest[end] == '"') quoted = !quoted;
        if (quoted && rest[end] == '\\') ++end;
    }
    end = std::min(end, rest.size());
    const std::string_view part = trim(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return part;
}

/// Value of a parameter, without its quotes; none if the parameter is missing.
std::optional<std::string_view> parameter(std::string_view parameters, std::string_view name) {
    while (!parameters.empty()) {
        const std::string_view part = next_part(parameters);
        const std::size_t equals = part.find('=');
        if (equals == std::string_view::npos || !equals_ignoring_case(part.substr(0, equals), name))
            continue;
        std::string_view value = part.substr(equals + 1);
        if (value.size() >= 2 && value.starts_with('"') && value.ends_with('"')) {
            value = value.substr(1, value.size() - 2);
        }
        return value;
    }
    return std::nullopt;
}

/// A header field may have any bytes; a message may not.
std::string shown_bytes(std::string_view field) {
    constexpr std::size_t max_length = 64;
    std::string plain(field.substr(0, max_length));
    for (char& byte : plain) {
        if (byte < ' ' || byte > '~') byte = '?';
    }
    return quoted_text(plain);
}

std::string media_types(std::span<const Encoding> encodings) {
    std::string text;
    for (const Encoding one : encodings) {
        text.append(text.empty() ? "" : " or ").append(media_type(one));
    }
    return text;
}

Error unsupported_type(std::string message) {
    return {.code = ErrorCode::unsupported_encoding, .message = std::move(message)};
}

}  // namespace

Result<Encoding> encoding_of(std::optional<std::string_view> content_type,
                             std::span<const Encoding> accepted) {
    if (!content_type || trim(*content_type).empty()) {
        return unsupported_type("missing Content-Type header (allowed " + media_types(accepted) +
                                ")");
    }
    std::string_view rest = *content_type;
    const std::string_view type = next_part(rest);
    const auto named = [type](Encoding one) { return equals_ignoring_case(type, media_type(one)); };
    const auto found = std::ranges::find_if(accepted, named);
    if (found == accepted.end()) {
        return unsupported_type("Content-Type: not supported (got " + shown_bytes(type) +
                                ", allowed " + media_types(accepted) + ")");
    }
    if (*found == Encoding::json) {
        const auto charset = parameter(rest, "charset");
        if (charset && !equals_ignoring_case(*charset, "utf-8") &&
            !equals_ignoring_case(*charset, "utf8")) {
            return unsupported_type("invalid charset in the Content-Type header (got " +
                                    shown_bytes(*charset) + ", allowed utf-8)");
        }
    } else if (parameter(rest, "boundary").value_or("").empty()) {
        return unsupported_type(
            "invalid Content-Type header: multipart/form-data requires the parameter boundary");
    }
    return *found;
}

}  // namespace polymux::contract
