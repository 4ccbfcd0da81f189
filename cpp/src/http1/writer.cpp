#include "polymux/http1/writer.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "http1/bytes.hpp"
#include "http1/head_rules.hpp"

namespace polymux::http1 {

namespace {

std::string_view reason_of(int status) noexcept {
    switch (status) {
        case 100:
            return "Continue";
        case 103:
            return "Early Hints";
        case 200:
            return "OK";
        case 201:
            return "Created";
        case 202:
            return "Accepted";
        case 204:
            return "No Content";
        case 206:
            return "Partial Content";
        case 301:
            return "Moved Permanently";
        case 302:
            return "Found";
        case 303:
            return "See Other";
        case 304:
            return "Not Modified";
        case 307:
            return "Temporary Redirect";
        case 308:
            return "Permanent Redirect";
        case 400:
            return "Bad Request";
        case 401:
            return "Unauthorized";
        case 403:
            return "Forbidden";
        case 404:
            return "Not Found";
        case 405:
            return "Method Not Allowed";
        case 408:
            return "Request Timeout";
        case 409:
            return "Conflict";
        case 410:
            return "Gone";
        case 411:
            return "Length Required";
        case 412:
            return "Precondition Failed";
        case 413:
            return "Content Too Large";
        case 414:
            return "URI Too Long";
        case 415:
            return "Unsupported Media Type";
        case 416:
            return "Range Not Satisfiable";
        case 417:
            return "Expectation Failed";
        case 422:
            return "Unprocessable Content";
        case 429:
            return "Too Many Requests";
        case 431:
            return "Request Header Fields Too Large";
        case 500:
            return "Internal Server Error";
        case 501:
            return "Not Implemented";
        case 502:
            return "Bad Gateway";
        case 503:
            return "Service Unavailable";
        case 504:
            return "Gateway Timeout";
        case 505:
            return "HTTP Version Not Supported";
        default:
            return "";
    }
}

bool is_value(std::string_view text) noexcept {
    return std::none_of(text.begin(), text.end(), is_control);
}

template <typename Number>
void append_number(std::string& out, Number number, int base) {
    std::array<char, 20> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
    out.append(digits.data(), end);
}

}  // namespace

HeadWriter HeadWriter::request(std::string& out, std::string_view method, std::string_view target) {
    HeadWriter writer(out);
    if (!is_token(method)) writer.fail("invalid method");
    if (!is_target(target)) writer.fail("invalid target");
    out.append(method).append(" ").append(target).append(" HTTP/1.1\r\n");
    return writer;
}

HeadWriter HeadWriter::response(std::string& out, int status) {
    HeadWriter writer(out);
    writer.status_ = status;
    if (status < 100 || status > 999) writer.fail("invalid status");
    out.append("HTTP/1.1 ");
    append_number(out, status, 10);
    out.append(" ").append(reason_of(status)).append("\r\n");
    return writer;
}

HeadWriter& HeadWriter::field(std::string_view name, std::string_view value) {
    if (is_framing(name)) {
        fail("framing fields have their own functions");
        return *this;
    }
    if (status_ == 0 && equals_ignoring_case(name, "host")) {
        if (has_host_) fail("several Host fields");
        if (!is_authority(trim(value))) fail("invalid Host");
        has_host_ = true;
    }
    append_field(name, value);
    return *this;
}

void HeadWriter::append_field(std::string_view name, std::string_view value) {
    if (!is_token(name)) fail("invalid field name");
    if (!is_value(value)) fail("invalid field value");
    out_->append(name).append(": ").append(trim(value)).append("\r\n");
}

HeadWriter& HeadWriter::content_length(std::uint64_t bytes) {
    set_framing(BodyFraming::length);
    out_->append("Content-Length: ");
    append_number(*out_, bytes, 10);
    out_->append("\r\n");
    return *this;
}

HeadWriter& HeadWriter::chunked() {
    set_framing(BodyFraming::chunked);
    out_->append("Transfer-Encoding: chunked\r\n");
    return *this;
}

HeadWriter& HeadWriter::until_close() {
    set_framing(BodyFraming::until_close);
    if (status_ == 0) fail("a request cannot end with its connection");
    return close();
}

HeadWriter& HeadWriter::close() {
    if (!says_close_) append_field("Connection", "close");
    says_close_ = true;
    return *this;
}

void HeadWriter::set_framing(BodyFraming framing) noexcept {
    if (framing_ != BodyFraming::none) fail("more than one framing");
    framing_ = framing;
}

bool HeadWriter::finish() {
    const bool is_interim = status_ >= 100 && status_ < 200;
    if (is_interim || status_ == 204) {
        if (framing_ != BodyFraming::none) fail("a response with this status has no body");
    } else if (status_ != 0 && status_ != 304 && framing_ == BodyFraming::none) {
        fail("no framing");
    }
    if (status_ == 0 && !has_host_) fail("no Host field");
    if (!failure_.empty()) {
        out_->resize(begin_);
        return false;
    }
    out_->append("\r\n");
    return true;
}

void HeadWriter::fail(std::string_view problem) noexcept {
    if (failure_.empty()) failure_ = problem;
}

void append_chunk(std::string& out, std::string_view data) {
    if (data.empty()) return;
    append_number(out, data.size(), 16);
    out.append("\r\n").append(data).append("\r\n");
}

bool append_last_chunk(std::string& out, std::span<const Field> trailers) {
    const bool are_valid = std::all_of(trailers.begin(), trailers.end(), [](const Field& field) {
        return is_token(field.name) && is_value(field.value) && !is_forbidden_trailer(field.name);
    });
    if (!are_valid) return false;
    out.append("0\r\n");
    for (const Field& field : trailers) {
        out.append(field.name).append(": ").append(trim(field.value)).append("\r\n");
    }
    out.append("\r\n");
    return true;
}

ChunkPieces::ChunkPieces(std::string_view data) noexcept : data_(data) {
    char* const end = size_line_.data() + size_line_.size();
    char* at = std::to_chars(size_line_.data(), end, data.size(), 16).ptr;
    *at++ = '\r';
    *at++ = '\n';
    size_line_bytes_ = static_cast<std::size_t>(at - size_line_.data());
}

std::array<iovec, 3> ChunkPieces::pieces() const noexcept {
    // writev does not change the bytes.
    const auto piece = [](std::string_view bytes) {
        return iovec{const_cast<char*>(bytes.data()), bytes.size()};
    };
    return {piece({size_line_.data(), size_line_bytes_}), piece(data_), piece("\r\n")};
}

DateText http_date(std::int64_t unix_s) noexcept {
    constexpr std::string_view weekdays = "SunMonTueWedThuFriSat";
    constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const std::chrono::sys_seconds time{std::chrono::seconds(unix_s)};
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss clock(time - day);
    DateText result = {};
    char* at = result.bytes.data();
    const auto text = [&](std::string_view part) { at = std::copy(part.begin(), part.end(), at); };
    const auto number = [&](std::int64_t value, int digits) {
        for (int digit = digits - 1; digit >= 0; --digit, value /= 10) {
            at[digit] = static_cast<char>('0' + value % 10);
        }
        at += digits;
    };
    text(weekdays.substr(std::chrono::weekday(day).c_encoding() * 3, 3));
    text(", ");
    number(unsigned(date.day()), 2);
    text(" ");
    text(months.substr((unsigned(date.month()) - 1) * 3, 3));
    text(" ");
    number(int(date.year()), 4);
    text(" ");
    number(clock.hours().count(), 2);
    text(":");
    number(clock.minutes().count(), 2);
    text(":");
    number(clock.seconds().count(), 2);
    text(" GMT");
    return result;
}

}  // namespace polymux::http1
