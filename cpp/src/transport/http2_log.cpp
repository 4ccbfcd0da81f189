#include "transport/http2_log.hpp"

#include <charconv>
#include <optional>

namespace polymux::transport {

namespace {

/// Removes `start`. Returns false if the text starts differently.
bool remove_start(std::string_view& text, std::string_view start) noexcept {
    if (!text.starts_with(start)) return false;
    text.remove_prefix(start.size());
    return true;
}

/// Removes a decimal number.
std::optional<std::uint32_t> remove_number(std::string_view& text) noexcept {
    std::uint32_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
    return value;
}

}  // namespace

Http2Event read_http2_log(std::string_view line) noexcept {
    if (remove_start(line, "Using Stream ID: ")) {
        const auto stream = remove_number(line);
        if (stream && line.starts_with(' '))
            return {.kind = Http2Event::Kind::opened, .stream = *stream};
    } else if (remove_start(line, "[HTTP/2] [")) {
        const auto stream = remove_number(line);
        if (stream && remove_start(line, "] OPENED "))
            return {.kind = Http2Event::Kind::opened, .stream = *stream};
    } else if (remove_start(line, "recveived GOAWAY, error=") ||
               remove_start(line, "received GOAWAY, error=")) {
        if (!remove_number(line) || !remove_start(line, ", last_stream=")) return {};
        if (const auto stream = remove_number(line))
            return {.kind = Http2Event::Kind::goaway, .stream = *stream};
    } else if (line.starts_with("REFUSED_STREAM, retrying")) {
        return {.kind = Http2Event::Kind::refused};
    } else if (line.starts_with("Connection died, retrying")) {
        return {.kind = Http2Event::Kind::resending};
    }
    return {};
}

}  // namespace polymux::transport
