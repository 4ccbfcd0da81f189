#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "polymux/request/json_scan.hpp"

using polymux::json::Scan;

namespace {

Scan scanned(std::string_view text, std::size_t piece_bytes) {
    Scan scan("method");
    for (std::size_t begin = 0; begin < text.size(); begin += piece_bytes) {
        scan.add(text.substr(begin, piece_bytes));
    }
    return scan;
}

}  // namespace

TEST_CASE("JSON text is measured while it arrives") {
    struct Case {
        std::string_view text;
        std::size_t depth;
        std::size_t max_values;
        std::string_view method;  // Empty if not found.
    };
    const std::string long_name = R"({"method":")" + std::string(101, 'a') + R"("})";
    for (const Case& one : {
             Case{R"({"method":"ping","id":1})", 1, 3, "ping"},
             Case{R"( { "id" : [1, 2] , "method" : "tools/call" } )", 2, 5, "tools/call"},
             // Names and values in other places.
             Case{R"({"params":{"method":"inner"},"a":"method","b":"method"})", 2, 5, ""},
             Case{R"(["method","ping"])", 1, 3, ""},
             Case{R"([{"method":"ping"}])", 2, 3, ""},
             Case{R"("method")", 0, 1, ""},
             // The last one counts.
             Case{R"({"method":"ping","method":"initialize"})", 1, 3, "initialize"},
             Case{R"({"method":"ping","method":{"a":"b"}})", 2, 4, ""},
             // Escapes hide the member.
             Case{R"({"method":"ping","\u006dethod":"initialize"})", 1, 3, ""},
             Case{R"({"\u006dethod":"initialize","method":"ping"})", 1, 3, ""},
             Case{R"({"method":"\u0070ing"})", 1, 2, ""},
             Case{R"({"a\"":"}]{[,,,,","method":"p"})", 1, 3, ""},
             Case{R"({"a":"\"}]{[,,,,\\","method":"p"})", 1, 3, "p"},
             Case{long_name, 1, 2, ""},
             Case{"[[[[", 4, 5, ""},
             Case{"]]}}[", 1, 2, ""},
         }) {
        for (const std::size_t piece_bytes : {1U, 3U, 1000U}) {
            CAPTURE(one.text);
            CAPTURE(piece_bytes);
            const Scan scan = scanned(one.text, piece_bytes);
            CHECK(scan.depth() == one.depth);
            CHECK(scan.values() == one.max_values);
            CHECK(scan.found().value_or("") == one.method);
        }
    }
}
