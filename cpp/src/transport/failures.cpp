#include "transport/failures.hpp"

#include <array>
#include <cstdio>
#include <utility>

namespace polymux::transport {

namespace {

std::string words_of(const CurlFailure& failure) {
    // libcurl asks for its address before it notices the end of the connection.
    const bool is_useful = !failure.detail.empty() && !failure.detail.starts_with("getpeername()");
    std::string words(is_useful ? failure.detail : curl_easy_strerror(failure.code));
    while (!words.empty() && (words.back() == '\n' || words.back() == '.')) words.pop_back();
    return words;
}

Error connect_error(const CurlFailure& failure, const std::string& origin, std::string_view stage) {
    return {.code = ErrorCode::connect_failed,
            .message = "cannot connect to " + origin + ": " + words_of(failure) +
                       ". Check the URL, and that the server is running",
            .os_errno = failure.os_errno == 0 ? std::nullopt : std::optional<int>(failure.os_errno),
            .stage = stage};
}

Error proxy_refusal(int status, const std::string& origin) {
    constexpr int no_credentials = 407;
    const std::string check =
        status == no_credentials ? "the user and password in its URL" : "its URL and its rules";
    return {.code = ErrorCode::connect_failed,
            .message = "cannot connect to " + origin +
                       ": the proxy refused the connection (status " + std::to_string(status) +
                       "). Check " + check,
            .stage = "proxy"};
}

Error lost(const CurlFailure& failure, const std::string& origin, std::string_view stage) {
    const std::string when = failure.answered    ? "in the middle of its response"
                             : failure.connected ? "before it responded"
                                                 : "before the request was sent";
    // With TLS 1.3, a server checks the certificate after the handshake.
    const bool may_want_certificate = failure.anonymous && !failure.answered;
    return {.code = ErrorCode::connection_lost,
            .message = origin + " closed the connection " + when + ": " + words_of(failure) +
                       (may_want_certificate ? ". It may require a client certificate" : ""),
            .os_errno = failure.os_errno == 0 ? std::nullopt : std::optional<int>(failure.os_errno),
            .stage = stage};
}

Error too_large(const std::string& origin) {
    return {
        .code = ErrorCode::answer_too_large,
        .message = "the response of " + origin + " is too large: a header field exceeds the limit",
        .stage = "receive"};
}

/// libcurl buffers data that its user does not accept, up to an internal limit.
Error not_read(const std::string& origin) {
    return {.code = ErrorCode::connection_lost,
            .message = "a stream of " + origin +
                       " was closed: too much unread data arrived. Read each stream as it arrives, "
                       "or close it",
            .stage = "receive"};
}

std::string_view meaning_of(std::string_view name) noexcept {
    if (name == "connect") return "connecting timed out";
    if (name == "write") return "sending the request timed out";
    if (name == "first_byte") return "waiting for the response timed out";
    if (name == "idle") return "receiving the response timed out";
    if (name == "event") return "waiting for the next chunk of the stream timed out";
    return "the request timed out";
}

}  // namespace

std::string seconds_text(milliseconds length) {
    std::array<char, 32> text{};
    constexpr double milliseconds_per_second = 1000;
    std::snprintf(text.data(), text.size(), "%g s",
                  static_cast<double>(length.count()) / milliseconds_per_second);
    return text.data();
}

Error no_memory() {
    return {.code = ErrorCode::out_of_memory, .message = "not enough memory"};
}

Error cancelled(std::string message) {
    return {.code = ErrorCode::cancelled, .message = std::move(message)};
}

std::string origin_of(std::string_view url) {
    const std::size_t scheme = url.find("://");
    if (scheme == std::string_view::npos)
        return std::string(url.substr(0, url.find_first_of("/?#")));
    constexpr std::size_t separator = 3;
    const std::string_view rest = url.substr(scheme + separator);
    std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
    if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
        authority.remove_prefix(at + 1);
    }
    return std::string(url.substr(0, scheme + separator)) + std::string(authority);
}

Error error_of(const CurlFailure& failure, const Request& request, const Deadlines& deadlines) {
    const std::string origin = origin_of(request.url);
    if (failure.proxy_status != 0) return proxy_refusal(failure.proxy_status, origin);
    switch (failure.code) {
        case CURLE_URL_MALFORMAT:
        case CURLE_UNSUPPORTED_PROTOCOL:
            if (failure.connected) break;  // HTTP/0.9, which has no status or headers.
            return {.code = ErrorCode::invalid_argument,
                    .message = "'" + origin + "' is not a valid server URL: " + words_of(failure)};
        case CURLE_COULDNT_RESOLVE_HOST:
            return connect_error(failure, origin, "resolve");
        case CURLE_COULDNT_RESOLVE_PROXY:
        case CURLE_PROXY:
            return connect_error(failure, origin, "proxy");
        case CURLE_COULDNT_CONNECT:
        case CURLE_INTERFACE_FAILED:
            return connect_error(failure, origin, "connect");
        case CURLE_SSL_CONNECT_ERROR:
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_CIPHER:
        case CURLE_SSL_ISSUER_ERROR:
        case CURLE_SSL_INVALIDCERTSTATUS:
        case CURLE_USE_SSL_FAILED:
            return {.code = ErrorCode::tls_failed,
                    .message = "cannot establish a trusted TLS connection to " + origin + ": " +
                               words_of(failure),
                    .stage = "tls"};
        case CURLE_SSL_CACERT_BADFILE:
            return {
                .code = ErrorCode::tls_failed,
                .message = "cannot check the certificate of " + origin +
                           ": the file of trusted certificates has no certificate in PEM format",
                .stage = "tls"};
        case CURLE_OPERATION_TIMEDOUT:
            return deadline_passed("connect", deadlines.connect.value_or(milliseconds{0}), request);
        case CURLE_SEND_ERROR:
        case CURLE_SEND_FAIL_REWIND:
            return lost(failure, origin, "send");
        case CURLE_RECV_ERROR:
        case CURLE_GOT_NOTHING:
        case CURLE_PARTIAL_FILE:
        case CURLE_HTTP2:
        case CURLE_HTTP2_STREAM:
        case CURLE_ABORTED_BY_CALLBACK:
            return lost(failure, origin, "receive");
#if LIBCURL_VERSION_NUM >= 0x080600
        case CURLE_TOO_LARGE:
            return failure.unread ? not_read(origin) : too_large(origin);
#endif
        case CURLE_OUT_OF_MEMORY:
            if (failure.unread) return not_read(origin);
            // Older versions report a header line over their limit of 100 KiB this way.
            if (failure.connected && !failure.answered) return too_large(origin);
            return no_memory();
        default:
            break;
    }
    return {.code = ErrorCode::undecodable_answer,
            .message = origin + " did not send a valid HTTP response: " + words_of(failure),
            .stage = "receive"};
}

Error deadline_passed(std::string_view name, milliseconds length, const Request& request) {
    return {.code = ErrorCode::timed_out,
            .message = origin_of(request.url) + ": " + std::string(meaning_of(name)) + " after " +
                       seconds_text(length) + " (timeout: " + std::string(name) + ")",
            .stage = name};
}

}  // namespace polymux::transport
