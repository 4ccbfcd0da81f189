#include <doctest/doctest.h>

#include <string>

#include "transport/failures.hpp"

using namespace polymux;
using namespace polymux::transport;

namespace {

Error error_for(CURLcode code, bool unread) {
    const CurlFailure failure{
        .code = code, .detail = {}, .connected = true, .answered = true, .unread = unread};
    return error_of(failure, {.url = "https://server.example/chat?key=secret"}, {});
}

}  // namespace

TEST_SUITE("failures") {
    TEST_CASE("a stream that was not read is reported, whichever error libcurl returns") {
        const Error error = error_for(CURLE_OUT_OF_MEMORY, true);
        CHECK(error.code == ErrorCode::connection_lost);
        CHECK(error.stage == "receive");
        CHECK(error.message.find("a stream of https://server.example was closed") == 0);
        CHECK(error.message.find("unread data") != std::string::npos);
        CHECK(error.message.find("secret") == std::string::npos);
        CHECK(error_for(CURLE_OUT_OF_MEMORY, false).code == ErrorCode::out_of_memory);
#if LIBCURL_VERSION_NUM >= 0x080600
        CHECK(error_for(CURLE_TOO_LARGE, true).message == error.message);
        CHECK(error_for(CURLE_TOO_LARGE, false).code == ErrorCode::answer_too_large);
#endif
    }
}
