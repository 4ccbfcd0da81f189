#include <doctest/doctest.h>

#include <string_view>
#include <utility>

#include "transport/http2_log.hpp"

using namespace polymux::transport;
using Kind = Http2Event::Kind;

TEST_SUITE("http2_log") {
    TEST_CASE("lines of libcurl 7.88 and 8") {
        const std::pair<std::string_view, Http2Event> lines[] = {
            {"Using Stream ID: 3 (easy handle 0x55)\n", {Kind::opened, 3}},
            {"[HTTP/2] [5] OPENED stream for https://a/b\n", {Kind::opened, 5}},
            {"recveived GOAWAY, error=0, last_stream=7\n", {Kind::goaway, 7}},
            {"received GOAWAY, error=11, last_stream=2147483647\n", {Kind::goaway, 2147483647}},
            {"REFUSED_STREAM, retrying a fresh connect\n", {Kind::refused, 0}},
            {"Connection died, retrying a fresh connect (retry count: 1)\n", {Kind::resending, 0}},
        };
        for (const auto& [text, event] : lines) {
            const std::string_view line = text;
            CAPTURE(line);
            CHECK(read_http2_log(line).kind == event.kind);
            CHECK(read_http2_log(line).stream == event.stream);
        }
    }

    TEST_CASE("other lines mean nothing") {
        for (const std::string_view line :
             {"", "Using Stream ID: ", "Using Stream ID: 99999999999 (easy handle 0x55)",
              "Using Stream ID: 3", "[HTTP/2] [5] [x: ] OPENED stream for a]",
              "h2h3 [x: received GOAWAY, error=0, last_stream=0]",
              "received GOAWAY, error=0, last_stream=", "received GOAWAY, last_stream=3",
              "Connection died, tried 5 times before giving up"}) {
            CAPTURE(line);
            CHECK(read_http2_log(line).kind == Kind::none);
        }
    }
}
