#include "server/refusals.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "ascii.hpp"
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

/// An id of the client must fit into logs.
bool is_request_id(std::string_view text) noexcept {
    return !text.empty() && text.size() <= 128 &&
           std::all_of(text.begin(), text.end(), [](char letter) {
               return is_word(letter) || letter == '.' || letter == ':' || letter == '-';
           });
}

/// Error bodies of the API. The texts are printable ASCII.
std::string error_body(std::string_view message, std::string_view code, std::string_view param,
                       std::string_view request_id) {
    std::string body;
    const auto add = [&body](std::string_view name, std::string_view text) {
        body.append(body.empty() ? "{\"" : ",\"").append(name).append("\":\"");
        for (const char letter : text) {
            if (letter == '"' || letter == '\\') body += '\\';
            body += letter;
        }
        body += '"';
    };
    add("error", message);
    add("code", code);
    if (!param.empty()) add("param", param);
    add("request_id", request_id);
    return body += '}';
}

}  // namespace

RefusalResponse::RefusalResponse(const GateRefusal& refusal, std::span<const http1::Field> request,
                                 const EndpointRules& endpoint) {
    for (const http1::Field& field : request) {
        if (field.name == "x-request-id" && is_request_id(field.value)) {
            request_id_ = field.value;
            break;
        }
    }
    if (request_id_.empty()) request_id_ = new_request_id();
    body_ = error_body(refusal.message, refusal.code, refusal.param, request_id_);
    length_ = std::to_string(body_.size());
    fields_ = {{"Polymux-Version", version()},
               {"Content-Type", "application/json"},
               {"Content-Length", length_},
               {"X-Request-Id", request_id_}};
    if (refusal.status == 401) fields_.push_back({"WWW-Authenticate", R"(Bearer realm="polymux")"});
    if (refusal.status == 405) {
        allowed_ = endpoint.allowed_methods();
        fields_.push_back({"Allow", allowed_});
    }
    if (refusal.retry_after_s != 0) {
        retry_after_ = std::to_string(refusal.retry_after_s);
        fields_.push_back({"Retry-After", retry_after_});
    }
}

std::string early_refusal(int status, http1::Refusal reason) {
    const auto [code, message] = words_of(status);
    const std::string id = new_request_id();
    std::string text(message);
    if (status == 400 && reason != http1::Refusal::none) {
        text.append(": ").append(http1::to_string(reason));
    }
    const std::string_view param = reason == http1::Refusal::invalid_host ? "Host" : "";
    const std::string body = error_body(text, code, param, id);
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
