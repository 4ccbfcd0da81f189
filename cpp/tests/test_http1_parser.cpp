// Events of the HTTP/1.1 parser, at every division of the input, and at the edges of its limits.
#include "polymux/http1/parser.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http1_support.hpp"

using polymux::http1::BodyFraming;
using polymux::http1::Event;
using polymux::http1::Limits;
using polymux::http1::MessageKind;
using polymux::http1::Parser;
using polymux::http1::Refusal;
using polymux::http1::TargetForm;
using polymux::testing::Http1Transcript;
using polymux::testing::read_http1;
using namespace std::string_view_literals;

namespace {

constexpr std::size_t whole = std::numeric_limits<std::size_t>::max();

/// The report for `bytes`, after it was found equal for steps of every size and for every cut.
std::string read(MessageKind kind, std::string_view bytes, const Limits& limits = {},
                 bool to_head_request = false) {
    const std::string expected =
        read_http1(kind, bytes, limits, [] { return whole; }, to_head_request);
    for (std::size_t step = 1; step <= bytes.size() && step < 64; ++step) {
        REQUIRE(read_http1(kind, bytes, limits, [&] { return step; }, to_head_request) == expected);
    }
    for (std::size_t cut = 1; cut < bytes.size() && cut < 2000; ++cut) {
        bool is_first = true;
        const auto size = [&] { return std::exchange(is_first, false) ? cut : whole; };
        REQUIRE(read_http1(kind, bytes, limits, size, to_head_request) == expected);
    }
    return expected;
}

std::string request(std::string_view bytes, const Limits& limits = {}) {
    return read(MessageKind::request, bytes, limits);
}

std::string response(std::string_view bytes, bool to_head_request = false,
                     const Limits& limits = {}) {
    return read(MessageKind::response, bytes, limits, to_head_request);
}

bool refuses(std::string_view report, Refusal refusal) {
    return report.find("refused:" + std::string(to_string(refusal)) + "]") !=
           std::string_view::npos;
}

std::string with_limit(const Limits& limits, std::string_view bytes) {
    return request(bytes, limits);
}

}  // namespace

TEST_CASE("requests without a body, pipelined") {
    CHECK(request("GET /a?b HTTP/1.1\r\nHost: h:80\r\nAccept:\t a b \t\r\nEmpty:\r\n\r\n"
                  "OPTIONS * HTTP/1.1\r\nhost:h\r\n\r\n") ==
          "[GET,/a?b,/a?b,h:80,,0,0,0,1,1,0,0{Host=h:80}{Accept=a b}{Empty=}][body:][end]"
          "[OPTIONS,*,*,h,,0,0,2,1,1,0,0{host=h}][body:][end]");
}

TEST_CASE("bodies with a length, and an empty line behind them") {
    CHECK(request("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello\r\n"
                  "PUT /x HTTP/1.1\r\nHost: h\r\ncontent-length: 0\r\n\r\n") ==
          "[POST,/,/,h,,0,0,0,1,1,1,5{Host=h}{Content-Length=5}][body:hello][end]"
          "[PUT,/x,/x,h,,0,0,0,1,1,1,0{Host=h}{content-length=0}][body:][end]");
}

TEST_CASE("chunked bodies with extensions and trailers") {
    CHECK(request("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
                  "5;a;b=c;d=\"e \\\" f\"\r\nhello\r\n00A\r\n, 12345678\r\n0;z\r\n"
                  "Digest: x\r\nX-Y:\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n") ==
          "[POST,/,/,h,,0,0,0,1,1,2,0{Host=h}{Transfer-Encoding=Chunked}]"
          "[body:hello, 12345678]{Digest=x}{X-Y=}[end]"
          "[GET,/,/,h,,0,0,0,1,1,0,0{Host=h}][body:][end]");
}

TEST_CASE("a connection ends by version and by Connection") {
    const auto keeps = [](std::string_view version, std::string_view connection) {
        const std::string first = "GET / HTTP/" + std::string(version) + "\r\nHost: h\r\n" +
                                  std::string(connection) + "\r\n";
        Http1Transcript transcript(MessageKind::request, Limits());
        transcript.read(first + first);
        CHECK(!transcript.refused());
        return transcript.messages() == 2;
    };
    CHECK(keeps("1.1", ""));
    CHECK(keeps("1.1", "Connection: keep-alive\r\n"));
    CHECK(!keeps("1.1", "Connection: close\r\n"));
    CHECK(!keeps("1.1", "connection: x, \tCLOSE ,y\r\n"));
    CHECK(!keeps("1.1", "Connection: close\t\r\n"));
    CHECK(!keeps("1.1", "Connection: keep-alive\r\nConnection: close\r\n"));
    CHECK(keeps("1.1", "Connection: closed\r\n"));
    CHECK(!keeps("1.0", ""));
    CHECK(keeps("1.0", "Connection: Keep-Alive\r\n"));
    CHECK(!keeps("1.0", "Connection: keep-alive, close\r\n"));
}

TEST_CASE("offers of other protocols are ignored, with and without a body") {
    CHECK(request("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
                  "POST / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
                  "Content-Length: 2\r\n\r\nhi") ==
          "[GET,/,/,h,,0,0,0,1,1,0,0{Host=h}{Connection=Upgrade}{Upgrade=h2c}][body:][end]"
          "[POST,/,/,h,,0,0,0,1,1,1,2{Host=h}{Connection=upgrade}{Upgrade=websocket}"
          "{Content-Length=2}][body:hi][end]");
    CHECK(refuses(response("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"),
                  Refusal::unexpected_upgrade));
}

TEST_CASE("100-continue is reported for requests with a body") {
    const auto expects = [](std::string_view head) {
        const Limits limits;
        Parser parser(MessageKind::request, limits);
        REQUIRE(parser.next(head) == Event::head);
        return parser.head().expects_continue;
    };
    CHECK(
        expects("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n"));
    CHECK(
        expects("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: "
                "chunked\r\n\r\n"));
    CHECK(!expects(
        "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n"));
    CHECK(!expects("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n"));
    CHECK(!expects(
        "POST / HTTP/1.0\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"));
    CHECK(refuses(request("GET / HTTP/1.1\r\nHost: h\r\nExpect: x\r\n\r\n"),
                  Refusal::unsupported_expectation));
}

TEST_CASE("the authority and the path of an absolute-form target") {
    CHECK(request("GET http://Example:81/a?b HTTP/1.1\r\nHost: other\r\n\r\n") ==
          "[GET,http://Example:81/a?b,/a?b,Example:81,,0,0,1,1,1,0,0{Host=other}][body:][end]");
    CHECK(request("GET HTTPS://[::1]?q HTTP/1.1\r\nHost: h\r\n\r\n") ==
          "[GET,HTTPS://[::1]?q,?q,[::1],,0,0,1,1,1,0,0{Host=h}][body:][end]");
    CHECK(request("GET / HTTP/1.0\r\n\r\n") == "[GET,/,/,,,0,0,0,0,0,0,0][body:][end]");
}

TEST_CASE("responses with a length, in chunks, and until the close") {
    CHECK(response("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
                   "HTTP/1.1 404 \r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
                   "HTTP/1.1 200\r\n\r\nrest\r\n") ==
          "[,,,,OK,0,200,0,1,1,1,2{Content-Length=2}][body:hi][end]"
          "[,,,,,0,404,0,1,1,2,0{Transfer-Encoding=chunked}][body:x][end]"
          "[,,,,,0,200,0,1,0,3,0][body:rest\r\n][end]");
    CHECK(response("HTTP/1.0 200 Fine day\r\n\r\n") ==
          "[,,,,Fine day,0,200,0,0,0,3,0][body:][end]");
}

TEST_CASE("responses without a body, whatever their fields say") {
    for (const auto status : {"204"sv, "304"sv}) {
        const std::string head =
            "HTTP/1.1 " + std::string(status) + " x\r\nContent-Length: 7\r\n\r\n";
        CHECK(response(head + head) ==
              "[,,,,x,0," + std::string(status) + ",0,1,1,0,0{Content-Length=7}][body:][end]" +
                  "[,,,,x,0," + std::string(status) + ",0,1,1,0,0{Content-Length=7}][body:][end]");
    }
    CHECK(response("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
                   "HTTP/1.1 199 x\r\nConnection: close\r\n\r\n"
                   "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx") ==
          "[,,,,Continue,0,100,0,1,1,0,0][body:][end]"
          "[,,,,Early Hints,0,103,0,1,1,0,0{Link=a}][body:][end]"
          "[,,,,x,0,199,0,1,1,0,0{Connection=close}][body:][end]"
          "[,,,,OK,0,200,0,1,1,1,1{Content-Length=1}][body:x][end]");
    for (const auto fields :
         {""sv, "Content-Length: 7\r\n"sv, "Transfer-Encoding: chunked\r\n"sv}) {
        const std::string head = "HTTP/1.1 200 OK\r\n" + std::string(fields) + "\r\n";
        const std::string report = response(head + head, true);
        CHECK(report.find("[body:][end]", report.find("[body:][end]") + 1) != std::string::npos);
        CHECK(report.find("refused") == std::string::npos);
    }
}

TEST_CASE("a connection that ends inside a message is refused, between messages it is not") {
    const std::string message =
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nA: "
        "b\r\n\r\n";
    for (std::size_t size = 1; size < message.size(); ++size) {
        CHECK(refuses(request(std::string_view(message).substr(0, size)), Refusal::incomplete));
    }
    CHECK(request(message).find("refused") == std::string::npos);
    CHECK(request("").empty());
    CHECK(refuses(response("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx"), Refusal::incomplete));
}

TEST_CASE("limits at their exact sizes") {
    const Limits limits = {.max_start_line_bytes = 20,
                           .max_field_bytes = 12,
                           .max_fields = 3,
                           .max_fields_bytes = 30,
                           .max_body_bytes = 10,
                           .max_chunk_extension_bytes = 6,
                           .max_trailers = 2,
                           .max_trailers_bytes = 16};
    const std::string start = "GET / HTTP/1.1\r\n";
    const std::string host = "Host: h\r\n";  // 9 bytes.
    const auto fits = [&](const std::string& bytes) {
        return with_limit(limits, bytes).find("refused") == std::string::npos;
    };
    const auto exceeds = [&](const std::string& bytes, Refusal refusal) {
        return refuses(with_limit(limits, bytes), refusal);
    };

    CHECK(fits("GET /" + std::string(6, 'a') + " HTTP/1.1\r\n" + host + "\r\n"));
    CHECK(exceeds("GET /" + std::string(7, 'a') + " HTTP/1.1\r\n" + host + "\r\n",
                  Refusal::start_line_too_long));
    CHECK(exceeds(std::string(100, 'A'), Refusal::start_line_too_long));
    CHECK(fits(start + host + "A: " + std::string(9, 'b') + "\r\n\r\n"));
    CHECK(
        exceeds(start + host + "A: " + std::string(10, 'b') + "\r\n\r\n", Refusal::field_too_long));
    CHECK(fits(start + host + "A:\r\nB:\r\n\r\n"));
    CHECK(exceeds(start + host + "A:\r\nB:\r\nC:\r\n\r\n", Refusal::too_many_fields));
    // 9 + 10 + 9 + 2 bytes.
    CHECK(fits(start + host + "A: 45678\r\nB: 4567\r\n\r\n"));
    CHECK(exceeds(start + host + "A: 45678\r\nB: 45678\r\n\r\n", Refusal::fields_too_large));

    const auto post = [&](const std::string& field, const std::string& body) {
        const Limits larger = {.max_body_bytes = 10,
                               .max_chunk_extension_bytes = 6,
                               .max_trailers = 2,
                               .max_trailers_bytes = 16};
        return request("POST / HTTP/1.1\r\nHost: h\r\n" + field + "\r\n\r\n" + body, larger);
    };
    const std::string chunked = "Transfer-Encoding: chunked";
    const std::string last = "0\r\n\r\n";
    CHECK(post("Content-Length: 10", "0123456789").find("[end]") != std::string::npos);
    CHECK(refuses(post("Content-Length: 11", ""), Refusal::body_too_large));
    CHECK(post(chunked, "5\r\n01234\r\n5\r\n56789\r\n" + last).find("[end]") != std::string::npos);
    CHECK(refuses(post(chunked, "5\r\n01234\r\n6\r\n"), Refusal::body_too_large));
    CHECK(refuses(post(chunked, "ffffffffffffffff\r\n"), Refusal::body_too_large));
    CHECK(refuses(post(chunked, "1\r\nx\r\nffffffffffffffff\r\n"), Refusal::body_too_large));
    CHECK(post(chunked, "1;aa\r\nx\r\n0;bb\r\n\r\n").find("[end]") != std::string::npos);
    CHECK(
        refuses(post(chunked, "1;aa\r\nx\r\n0;bbb\r\n\r\n"), Refusal::chunk_extensions_too_large));
    CHECK(
        refuses(post(chunked, "1;" + std::string(100, 'a')), Refusal::chunk_extensions_too_large));
    CHECK(post(chunked, "0\r\nA: 4567\r\nB:\r\n\r\n").find("{A=4567}{B=}[end]") !=
          std::string::npos);
    CHECK(refuses(post(chunked, "0\r\nA:\r\nB:\r\nC:\r\n\r\n"), Refusal::too_many_trailers));
    CHECK(post(chunked, "0\r\nA: 4567890abc\r\n\r\n").find("[end]") == std::string::npos);
    CHECK(post(chunked, "0\r\nA: 456789012\r\n\r\n").find("[end]") != std::string::npos);
    CHECK(refuses(post(chunked, "0\r\nA: 4567890123\r\n\r\n"), Refusal::trailers_too_large));
}

TEST_CASE("a limit of one body, set after its head") {
    const Limits limits;
    const auto head = [](std::string_view field) {
        return "POST / HTTP/1.1\r\nHost: h\r\n" + std::string(field) + "\r\n\r\n";
    };
    Parser declared(MessageKind::request, limits);
    const std::string long_one = head("Content-Length: 9");
    std::string_view input = long_one;
    REQUIRE(declared.next(input) == Event::head);
    CHECK(declared.limit_body(9));
    CHECK(!declared.limit_body(8));
    CHECK(declared.next(input) == Event::refused);
    CHECK(declared.refusal() == Refusal::body_too_large);

    Parser chunked(MessageKind::request, limits);
    const std::string both = head("Transfer-Encoding: chunked") + "9\r\n123456789\r\n0\r\n\r\n" +
                             head("Transfer-Encoding: chunked") + "9\r\n";
    input = both;
    REQUIRE(chunked.next(input) == Event::head);
    CHECK(chunked.limit_body(9));
    CHECK(chunked.next(input) == Event::body);
    CHECK(chunked.next(input) == Event::end);
    REQUIRE(chunked.next(input) == Event::head);
    CHECK(chunked.limit_body(8));
    CHECK(chunked.next(input) == Event::refused);
}

TEST_CASE("bodies are views into the input") {
    const Limits limits;
    Parser parser(MessageKind::request, limits);
    const std::string bytes =
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    std::string_view input = bytes;
    REQUIRE(parser.next(input) == Event::head);
    CHECK(parser.head().target.data() == bytes.data() + bytes.find('/'));
    REQUIRE(parser.next(input) == Event::body);
    CHECK(parser.body() == "abc");
    CHECK(parser.body().data() == bytes.data() + bytes.find("abc"));
    CHECK(parser.next(input) == Event::end);
    CHECK(parser.head().fields.find("HOST") == "h"sv);
    CHECK(!parser.head().fields.find("hos"));
}

TEST_CASE("an idle parser keeps at most 1 KiB, and a moved one continues") {
    const Limits limits;
    Parser parser(MessageKind::request, limits);
    std::string bytes = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n";
    for (int field = 0; field < 150; ++field) bytes += "Field-Name: value of a field\r\n";
    bytes += "\r\n5\r\nhello\r\n0\r\nA: " + std::string(2000, 'x') + "\r\n\r\n";
    for (int round = 0; round < 3; ++round) {
        CHECK(parser.idle());
        for (const char byte : bytes) {
            std::string_view input(&byte, 1);
            while (parser.next(input) != Event::need_input) continue;
        }
        CHECK(parser.refusal() == Refusal::none);
        CHECK(parser.memory_bytes() <= 1024);
        std::string_view input = std::string_view(bytes).substr(0, 300);
        CHECK(parser.next(input) == Event::need_input);
        CHECK(!parser.idle());
        Parser moved = std::move(parser);
        input = std::string_view(bytes).substr(300);
        REQUIRE(moved.next(input) == Event::head);
        parser = std::move(moved);
        CHECK(parser.head().target == "/");
        CHECK(parser.head().fields.size() == 152);
        CHECK(parser.head().fields[151].value == "value of a field");
        while (parser.next(input) != Event::need_input) continue;
        CHECK(parser.refusal() == Refusal::none);
    }
}
