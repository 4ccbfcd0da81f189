#include "http1/head_rules.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "http1/bytes.hpp"

namespace polymux::http1 {

namespace {

using detail::HeadFacts;
using namespace std::string_view_literals;

constexpr std::array methods = {"GET"sv,    "POST"sv,  "HEAD"sv, "OPTIONS"sv,
                                "DELETE"sv, "PATCH"sv, "PUT"sv,  "TRACE"sv};

TextRange range(std::size_t begin, std::size_t size) noexcept {
    return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(size)};
}

/// "HTTP/1.0" or "HTTP/1.1"
Refusal read_version(std::string_view version, HeadFacts& facts) noexcept {
    constexpr std::string_view protocol = "HTTP/";
    if (version.size() != protocol.size() + 3 || !version.starts_with(protocol) ||
        !is_digit(version[5]) || version[6] != '.' || !is_digit(version[7])) {
        return Refusal::invalid_start_line;
    }
    if (version[5] != '1' || version[7] > '1') return Refusal::unsupported_version;
    facts.minor_version = version[7] == '1' ? 1 : 0;
    return Refusal::none;
}

/// Divides a target that begins at `begin`.
Refusal read_target(std::string_view target, std::size_t begin, std::string_view method,
                    HeadFacts& facts) noexcept {
    if (!is_target(target)) return Refusal::invalid_target;
    facts.ranges.path = facts.ranges.target = range(begin, target.size());
    if (target.front() == '/') return Refusal::none;
    if (target == "*") {
        facts.target_form = TargetForm::asterisk;
        return method == "OPTIONS" ? Refusal::none : Refusal::invalid_target;
    }
    for (const std::string_view scheme : {"http://"sv, "https://"sv}) {
        if (!equals_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
        const std::size_t end = std::min(target.find_first_of("/?", scheme.size()), target.size());
        facts.target_form = TargetForm::absolute;
        facts.ranges.authority = range(begin + scheme.size(), end - scheme.size());
        facts.ranges.path = range(begin + end, target.size() - end);
        return is_authority(target.substr(scheme.size(), end - scheme.size()))
                   ? Refusal::none
                   : Refusal::invalid_target;
    }
    return Refusal::invalid_target;
}

Refusal apply_host(std::string_view value, std::size_t value_begin, HeadFacts& facts) noexcept {
    if (facts.has_host) return Refusal::several_hosts;
    if (!is_authority(value)) return Refusal::invalid_host;
    facts.has_host = true;
    // The host of an absolute-form target replaces the field (RFC 9112, section 3.2.2).
    if (facts.target_form != TargetForm::absolute) {
        facts.ranges.authority = range(value_begin, value.size());
    }
    return Refusal::none;
}

Refusal apply_content_length(std::string_view value, HeadFacts& facts) noexcept {
    if (facts.has_length) return Refusal::several_content_lengths;
    if (facts.is_chunked) return Refusal::length_and_transfer_encoding;
    constexpr std::size_t max_digits = 19;
    if (value.empty() || !std::all_of(value.begin(), value.end(), is_digit)) {
        return value.find(',') == std::string_view::npos ? Refusal::invalid_content_length
                                                         : Refusal::several_content_lengths;
    }
    std::int64_t bytes = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), bytes);
    if (value.size() > max_digits || read.ec != std::errc()) return Refusal::invalid_content_length;
    facts.has_length = true;
    facts.content_length_bytes = static_cast<std::uint64_t>(bytes);
    return Refusal::none;
}

Refusal apply_transfer_encoding(std::string_view value, HeadFacts& facts) noexcept {
    if (facts.has_length) return Refusal::length_and_transfer_encoding;
    if (facts.minor_version == 0 || facts.is_chunked) return Refusal::invalid_transfer_encoding;
    if (equals_ignoring_case(value, "chunked")) {
        facts.is_chunked = true;
        return Refusal::none;
    }
    // Other codings before a final "chunked" are valid, but not supported.
    const std::size_t comma = value.rfind(',');
    if (comma == std::string_view::npos ||
        !equals_ignoring_case(trim(value.substr(comma + 1)), "chunked")) {
        return Refusal::invalid_transfer_encoding;
    }
    std::string_view others = value.substr(0, comma);
    while (true) {
        const std::size_t next = others.find(',');
        const std::string_view coding = trim(others.substr(0, next));
        if (!is_token(coding.substr(0, coding.find_first_of("; \t"))) ||
            equals_ignoring_case(coding, "chunked")) {
            return Refusal::invalid_transfer_encoding;
        }
        if (next == std::string_view::npos) return Refusal::unsupported_transfer_encoding;
        others.remove_prefix(next + 1);
    }
}

void apply_connection(std::string_view value, HeadFacts& facts) noexcept {
    while (true) {
        const std::size_t comma = value.find(',');
        const std::string_view option = trim(value.substr(0, comma));
        if (equals_ignoring_case(option, "close")) facts.says_close = true;
        if (equals_ignoring_case(option, "keep-alive")) facts.says_keep_alive = true;
        if (comma == std::string_view::npos) return;
        value.remove_prefix(comma + 1);
    }
}

Refusal apply_expect(std::string_view value, HeadFacts& facts) noexcept {
    if (!equals_ignoring_case(value, "100-continue")) return Refusal::unsupported_expectation;
    facts.expects_continue = true;
    return Refusal::none;
}

/// The end of a token that begins at `at`, or `at` if there is none.
std::size_t token_end(std::string_view text, std::size_t at) noexcept {
    while (at < text.size() && is_token(text.substr(at, 1))) ++at;
    return at;
}

/// The end of a quoted string that begins at `at`; npos if it does not end.
std::size_t quoted_end(std::string_view text, std::size_t at) noexcept {
    for (++at; at < text.size(); ++at) {
        if (text[at] == '"') return at + 1;
        if (text[at] == '\\') ++at;
    }
    return std::string_view::npos;
}

/// *( ";" name [ "=" ( token / quoted-string ) ] ), without the spaces that RFC 9112 deprecates.
bool are_extensions(std::string_view text) noexcept {
    std::size_t at = 0;
    while (at < text.size()) {
        if (text[at] != ';') return false;
        const std::size_t name_end = token_end(text, at + 1);
        if (name_end == at + 1) return false;
        at = name_end;
        if (at == text.size() || text[at] != '=') continue;
        ++at;
        const bool is_quoted = at < text.size() && text[at] == '"';
        const std::size_t value_end = is_quoted ? quoted_end(text, at) : token_end(text, at);
        if (value_end == at || value_end > text.size()) return false;
        at = value_end;
    }
    return true;
}

}  // namespace

Refusal read_request_line(std::string_view line, HeadFacts& facts) noexcept {
    const std::size_t method_end = line.find(' ');
    const std::size_t target_end = line.rfind(' ');
    if (method_end == std::string_view::npos) return Refusal::invalid_start_line;
    const std::string_view method = line.substr(0, method_end);
    if (!is_token(method)) return Refusal::invalid_method;
    if (target_end == method_end) return Refusal::invalid_start_line;
    const Refusal version = read_version(line.substr(target_end + 1), facts);
    if (version != Refusal::none) return version;
    if (std::find(methods.begin(), methods.end(), method) == methods.end()) {
        return Refusal::unknown_method;
    }
    facts.ranges.method = range(0, method_end);
    const std::size_t begin = method_end + 1;
    return read_target(line.substr(begin, target_end - begin), begin, method, facts);
}

Refusal read_status_line(std::string_view line, HeadFacts& facts) noexcept {
    constexpr std::size_t status_begin = 9;
    constexpr std::size_t status_end = 12;
    const Refusal version = read_version(line.substr(0, status_begin - 1), facts);
    if (version != Refusal::none) return version;
    // Many servers send no space before an empty reason.
    if (line.size() < status_end || line[status_begin - 1] != ' ' || line[status_begin] == '0' ||
        (line.size() > status_end && line[status_end] != ' ')) {
        return Refusal::invalid_start_line;
    }
    for (std::size_t at = status_begin; at < status_end; ++at) {
        if (!is_digit(line[at])) return Refusal::invalid_start_line;
        facts.status = static_cast<std::uint16_t>(facts.status * 10 + (line[at] - '0'));
    }
    const std::size_t reason_begin = std::min(status_end + 1, line.size());
    facts.ranges.reason = range(reason_begin, line.size() - reason_begin);
    return facts.status == 101 ? Refusal::unexpected_upgrade : Refusal::none;
}

Refusal read_field_line(std::string_view line, FieldPosition& position) noexcept {
    if (line.front() == ' ' || line.front() == '\t') return Refusal::folded_field;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return Refusal::invalid_field;
    if (!is_token(line.substr(0, colon))) return Refusal::invalid_field_name;
    const std::string_view value = trim(line.substr(colon + 1));
    position = {range(0, colon),
                range(static_cast<std::size_t>(value.data() - line.data()), value.size())};
    return Refusal::none;
}

Refusal apply_field(const Field& field, std::size_t value_begin, MessageKind kind,
                    HeadFacts& facts) noexcept {
    const auto is = [&](std::string_view name) { return equals_ignoring_case(field.name, name); };
    // The lengths avoid comparisons of most names.
    switch (field.name.size()) {
        case "host"sv.size():
            if (kind == MessageKind::request && is("host")) {
                return apply_host(field.value, value_begin, facts);
            }
            break;
        case "expect"sv.size():
            if (kind == MessageKind::request && is("expect")) {
                return apply_expect(field.value, facts);
            }
            break;
        case "connection"sv.size():
            if (is("connection")) apply_connection(field.value, facts);
            break;
        case "content-length"sv.size():
            if (is("content-length")) return apply_content_length(field.value, facts);
            break;
        case "transfer-encoding"sv.size():
            if (is("transfer-encoding")) return apply_transfer_encoding(field.value, facts);
            break;
        default:
            break;
    }
    return Refusal::none;
}

bool is_authority(std::string_view text) noexcept {
    if (text.empty() || !detail::all_of_class(text, detail::host_byte)) return false;
    std::size_t host_end = 0;
    if (text.front() == '[') {
        host_end = text.find(']');
        if (host_end == std::string_view::npos || host_end == 1) return false;
        const std::string_view address = text.substr(1, host_end - 1);
        if (address.find_first_of("[%") != std::string_view::npos) return false;
        ++host_end;
    } else {
        host_end = std::min(text.find(':'), text.size());
        const std::string_view name = text.substr(0, host_end);
        if (name.empty() || name.find_first_of("[]") != std::string_view::npos) return false;
        for (std::size_t at = name.find('%'); at != std::string_view::npos;
             at = name.find('%', at + 1)) {
            if (at + 2 >= name.size() || hex_digit(name[at + 1]) < 0 ||
                hex_digit(name[at + 2]) < 0) {
                return false;
            }
        }
    }
    const std::string_view port = text.substr(host_end);
    if (port.empty()) return true;
    constexpr std::size_t max_port_digits = 5;
    return port.front() == ':' && port.size() <= 1 + max_port_digits &&
           std::all_of(port.begin() + 1, port.end(), is_digit);
}

bool is_framing(std::string_view name) noexcept {
    return equals_ignoring_case(name, "content-length") ||
           equals_ignoring_case(name, "transfer-encoding");
}

bool is_forbidden_trailer(std::string_view name) noexcept {
    constexpr std::array names = {// Framing and routing.
                                  "connection"sv, "content-length"sv, "host"sv, "keep-alive"sv,
                                  "te"sv, "trailer"sv, "transfer-encoding"sv, "upgrade"sv,
                                  // Control, authentication and the content's format.
                                  "authorization"sv, "cache-control"sv, "content-encoding"sv,
                                  "content-range"sv, "content-type"sv, "cookie"sv, "expect"sv,
                                  "max-forwards"sv, "pragma"sv, "proxy-authenticate"sv,
                                  "proxy-authorization"sv, "range"sv, "set-cookie"sv,
                                  "www-authenticate"sv};
    return std::any_of(names.begin(), names.end(), [&](std::string_view forbidden) {
        return equals_ignoring_case(name, forbidden);
    });
}

Refusal read_chunk_line(std::string_view line, ChunkLine& chunk) noexcept {
    constexpr std::size_t max_digits = 16;
    std::size_t digits = 0;
    chunk.size_bytes = 0;
    for (; digits < line.size() && hex_digit(line[digits]) >= 0; ++digits) {
        if (digits == max_digits) return Refusal::invalid_chunk_size;
        chunk.size_bytes =
            chunk.size_bytes << 4U | static_cast<std::uint64_t>(hex_digit(line[digits]));
    }
    if (digits == 0) return Refusal::invalid_chunk_size;
    chunk.extension_bytes = line.size() - digits;
    if (chunk.extension_bytes > 0 && line[digits] != ';') return Refusal::invalid_chunk_size;
    return are_extensions(line.substr(digits)) ? Refusal::none : Refusal::invalid_chunk_extension;
}

}  // namespace polymux::http1
