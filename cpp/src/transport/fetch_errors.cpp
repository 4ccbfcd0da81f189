#include "transport/fetch_errors.hpp"

#include <string>

#include "transport/failures.hpp"
#include "transport/fetch_monitor.hpp"

namespace polymux::transport {
namespace {

Error failure(ErrorCode code, std::string message, std::string_view stage) {
    return {.code = code, .message = std::move(message), .stage = stage};
}

}  // namespace

Error curl_error(CURLcode outcome) {
    switch (outcome) {
        case CURLE_COULDNT_RESOLVE_HOST:
            return failure(ErrorCode::connect_failed,
                           "cannot resolve the host of the URL. Check the host name", "resolve");
        case CURLE_COULDNT_CONNECT:
        case CURLE_INTERFACE_FAILED:
            return failure(ErrorCode::connect_failed, "cannot connect to the host of the URL",
                           "connect");
        case CURLE_OPERATION_TIMEDOUT:
            return timeout_error("connect");
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_ISSUER_ERROR:
            return failure(ErrorCode::tls_failed,
                           "the server's certificate is not trusted for this host", "tls");
        case CURLE_SSL_CONNECT_ERROR:
        case CURLE_SSL_CIPHER:
        case CURLE_SSL_ENGINE_INITFAILED:
            return failure(ErrorCode::tls_failed, "the TLS handshake with the server failed",
                           "tls");
        case CURLE_SSL_CACERT_BADFILE:
            return failure(ErrorCode::tls_failed,
                           "the file of trusted certificates has no certificate in PEM format",
                           "tls");
        case CURLE_SEND_ERROR:
            return failure(ErrorCode::connection_lost,
                           "the connection was closed while the request was being sent", "send");
        case CURLE_PARTIAL_FILE:
            return failure(ErrorCode::connection_lost,
                           "the connection was closed before the response was complete", "receive");
        case CURLE_GOT_NOTHING:
        case CURLE_RECV_ERROR:
            return failure(ErrorCode::connection_lost,
                           "the connection was lost before the response was complete", "receive");
        case CURLE_BAD_CONTENT_ENCODING:
            return failure(ErrorCode::connection_lost,
                           "the response's Content-Encoding is invalid or not supported",
                           "receive");
        case CURLE_WEIRD_SERVER_REPLY:
        case CURLE_UNSUPPORTED_PROTOCOL:
            return failure(ErrorCode::connection_lost, "the server's response is not HTTP",
                           "receive");
        case CURLE_OUT_OF_MEMORY:
            return no_memory();
        default:
            return failure(ErrorCode::connection_lost,
                           std::string("the transfer failed: ") + curl_easy_strerror(outcome),
                           "receive");
    }
}

Error timeout_error(std::string_view limit) {
    const std::string_view what = limit == "connect" ? "connecting timed out"
                                  : limit == "idle"  ? "the server sent no data for too long"
                                  : limit == "rate"  ? "the server sent data too slowly"
                                                     : "the download took too long";
    return failure(ErrorCode::timed_out,
                   std::string(what) + " (timeout: " + std::string(limit) + ")", limit);
}

}  // namespace polymux::transport
