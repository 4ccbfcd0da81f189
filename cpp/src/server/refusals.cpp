#include "server/refusals.hpp"

#include <sys/random.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "polymux/http1/writer.hpp"
#include "polymux/version.hpp"

namespace polymux::server {

namespace {

struct Words {
    std::string_view code;
    std::string_view message;
};

Words words_of(int status) noexcept {
    switch (status) {
        case 405:
            return {"wrong_method", "method not allowed"};
        case 408:
            return {"too_slow", "timed out: the request header arrives too slowly"};
        case 413:
            return {"too_large", "the request body is too large"};
        case 414:
            return {"too_long", "the URL is too long"};
        case 417:
            return {"invalid_request", "unsupported expectation (allowed: 100-continue)"};
        case 431:
            return {"header_too_large", "the request header is too large"};
        case 501:
            return {"unsupported", "the method or transfer encoding is not supported"};
        case 503:
            return {"overloaded", "too many connections. Try again later"};
        case 505:
            return {"wrong_version", "HTTP version not supported (supported: 1.0 and 1.1)"};
        default:
            return {"invalid_request", "invalid HTTP/1.1 request"};
    }
}

std::string new_request_id() {
    std::array<std::uint8_t, 12> random{};
    // Does not fail for so few bytes, once the system has started (getrandom(2)).
    [[maybe_unused]] const auto filled = ::getrandom(random.data(), random.size(), 0);
    constexpr std::string_view digits = "0123456789abcdef";
    std::string id = "req_";
    for (const std::uint8_t byte : random) {
        id += digits[byte >> 4U];
        id += digits[byte & 15U];
    }
    return id;
}

}  // namespace

std::string early_refusal(int status, http1::Refusal reason) {
    const auto [code, message] = words_of(status);
    const std::string id = new_request_id();
    std::string body = R"({"error": ")";
    body.append(message);
    if (status == 400 && reason != http1::Refusal::none) {
        body.append(": ").append(http1::to_string(reason));
    }
    body.append(R"(", "code": ")").append(code);
    if (reason == http1::Refusal::invalid_host) body.append(R"(", "param": "Host)");
    body.append(R"(", "request_id": ")").append(id).append(R"("})");
    std::string out;
    http1::HeadWriter head = http1::HeadWriter::response(out, status);
    head.field("Content-Type", "application/json").field("Polymux-Version", version());
    head.field("X-Request-Id", id);
    if (status == 405) head.field("Allow", "DELETE, GET, HEAD, OPTIONS, POST");
    if (status == 503) head.field("Retry-After", "5");
    head.content_length(body.size()).close();
    if (head.finish()) out.append(body);
    return out;
}

}  // namespace polymux::server
