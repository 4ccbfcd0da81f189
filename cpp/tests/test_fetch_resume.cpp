// Resuming a body whose beginning exists: the requested range, the responses that match it, and a
// single new request for the whole body otherwise.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fetch_support.hpp"
#include "polymux/transport/fetch.hpp"
#include "transport/content_range.hpp"

using namespace polymux;
using namespace polymux::transport;
using namespace polymux::testing;

namespace {

const std::string whole = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: \"a\"\r\n\r\n0123456789";

/// The remainder "56789" of ten bytes, with these headers.
std::string rest_with(const std::string& headers) {
    return "HTTP/1.1 206 Partial Content\r\n" + headers + "Content-Length: 5\r\n\r\n56789";
}
const std::string good_range = "Content-Range: bytes 5-9/10\r\n";

struct Resumed {
    Outcome outcome;
    std::vector<FetchStart> starts;
    std::vector<std::string> requests;
};

/// Runs a fetch for which five bytes exist.
Resumed run_resumed(std::vector<std::string> answers, FetchResume resume = {.offset_bytes = 5},
                    std::uint64_t most = 1000) {
    const Server server(std::move(answers));
    const auto resolver = [](const std::string&, int) { return Result(addresses({"127.0.0.1"})); };
    FetchOptions options = options_for(server.port(), resolver);
    options.limits.body_bytes = most;
    options.resume = std::move(resume);
    std::vector<FetchStart> starts;
    options.started = [&](const FetchStart& start) -> Result<void> {
        starts.push_back(start);
        return {};
    };
    Outcome outcome = run(url_of(server.port()), options);
    return {
        .outcome = std::move(outcome), .starts = std::move(starts), .requests = server.requests()};
}

bool has(const std::string& request, const std::string& header) {
    return request.find("\r\n" + header + "\r\n") != std::string::npos;
}

}  // namespace

TEST_CASE("the remainder of a body follows the existing part") {
    const auto got = run_resumed({rest_with(good_range + "ETag: \"a\"\r\n")},
                                 {.offset_bytes = 5, .etag = "\"a\"", .total_bytes = 10});
    REQUIRE(got.outcome.fetched.has_value());
    CHECK(got.outcome.fetched->status == 206);
    CHECK(got.outcome.fetched->offset == 5);
    CHECK(got.outcome.fetched->body_bytes == 5);
    CHECK(got.outcome.body == "56789");
    REQUIRE(got.requests.size() == 1);
    CHECK(has(got.requests[0], "Range: bytes=5-"));
    CHECK(has(got.requests[0], "If-Range: \"a\""));
    REQUIRE(got.starts.size() == 1);
    CHECK(got.starts[0].offset == 5);
    CHECK(got.starts[0].status == 206);
    CHECK(got.starts[0].total_bytes == 10);
    CHECK(got.starts[0].etag == "\"a\"");
    CHECK_FALSE(got.starts[0].is_encoded);
}

TEST_CASE("forms of a valid remainder") {
    for (const std::string& headers : {std::string("Content-Range: bytes 5-9/*\r\n"),
                                       std::string("content-range: BYTES 5-9/10\r\n"),
                                       good_range + "Content-Encoding: identity\r\n"}) {
        CAPTURE(headers);
        const auto got = run_resumed({rest_with(headers)});
        REQUIRE(got.outcome.fetched.has_value());
        CHECK(got.outcome.fetched->offset == 5);
        CHECK(got.outcome.body == "56789");
    }
    const auto chunked = run_resumed({"HTTP/1.1 206 Partial Content\r\n" + good_range +
                                      "Transfer-Encoding: chunked\r\n\r\n5\r\n56789\r\n0\r\n\r\n"});
    REQUIRE(chunked.outcome.fetched.has_value());
    CHECK(chunked.outcome.body == "56789");
    CHECK(chunked.starts[0].total_bytes == 10);
}

TEST_CASE("a response with the whole body starts again without another request") {
    const auto got = run_resumed({whole}, {.offset_bytes = 5, .etag = "\"b\""});
    REQUIRE(got.outcome.fetched.has_value());
    CHECK(got.outcome.fetched->offset == 0);
    CHECK(got.outcome.body == "0123456789");
    CHECK(got.requests.size() == 1);
    REQUIRE(got.starts.size() == 1);
    CHECK(got.starts[0].offset == 0);
    CHECK(got.starts[0].total_bytes == 10);
    CHECK(got.starts[0].etag == "\"a\"");
}

TEST_CASE("a wrong remainder is not read, and the whole body is requested once") {
    const FetchResume known{.offset_bytes = 5, .etag = "\"a\"", .total_bytes = 10};
    std::vector<std::string> answers;
    for (const char* const range :
         {"", "Content-Range: bytes 4-8/10\r\n", "Content-Range: bytes 6-10/11\r\n",
          "Content-Range: bytes 0-9/10\r\n", "Content-Range: bytes 5-9/11\r\n",
          "Content-Range: bytes 5-8/10\r\n", "Content-Range: bytes 5-10/11\r\n",
          "Content-Range: bytes 5-9\r\n", "Content-Range: items 5-9/10\r\n",
          "Content-Range: bytes */10\r\n", "Content-Range: bytes 5-9/9\r\n"}) {
        answers.push_back(rest_with(range));
    }
    answers.push_back(rest_with(good_range + good_range));
    answers.push_back(rest_with(good_range + "ETag: \"b\"\r\n"));
    answers.push_back(rest_with(good_range + "ETag: W/\"a\"\r\n"));
    answers.push_back(rest_with(good_range + "Content-Encoding: gzip\r\n"));
    answers.push_back("HTTP/1.1 206 Partial Content\r\n" + good_range +
                      "Content-Length: 6\r\n\r\n567890");
    answers.emplace_back(
        "HTTP/1.1 416 Range Not Satisfiable\r\n"
        "Content-Range: bytes */5\r\nContent-Length: 100000\r\n\r\n");
    for (const std::string& answer : answers) {
        CAPTURE(answer);
        const auto got = run_resumed({answer, whole}, known);
        REQUIRE(got.outcome.fetched.has_value());
        CHECK(got.outcome.fetched->status == 200);
        CHECK(got.outcome.fetched->offset == 0);
        CHECK(got.outcome.body == "0123456789");
        REQUIRE(got.requests.size() == 2);
        CHECK(has(got.requests[0], "Range: bytes=5-"));
        CHECK(got.requests[1].find("Range") == std::string::npos);
        CHECK(got.starts.size() == 1);
    }
}

TEST_CASE("a server that always rejects ranges is queried only twice") {
    const std::string never = "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n";
    const auto got = run_resumed({never});
    REQUIRE(got.outcome.fetched.has_value());
    CHECK(got.outcome.fetched->status == 416);
    CHECK(got.requests.size() == 2);
}

TEST_CASE("redirects keep the range, and a request for the whole body starts at the first URL") {
    const std::string onward = "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n";
    auto got = run_resumed({onward, rest_with(good_range)});
    REQUIRE(got.outcome.fetched.has_value());
    CHECK(got.outcome.fetched->offset == 5);
    CHECK(got.outcome.fetched->redirects == 1);
    REQUIRE(got.requests.size() == 2);
    CHECK(got.requests[1].starts_with("GET /b "));
    CHECK(has(got.requests[1], "Range: bytes=5-"));

    got = run_resumed({onward, rest_with(""), onward, whole});
    REQUIRE(got.outcome.fetched.has_value());
    CHECK(got.outcome.body == "0123456789");
    CHECK(got.outcome.fetched->redirects == 1);
    REQUIRE(got.requests.size() == 4);
    CHECK(got.requests[2].starts_with("GET / "));
}

TEST_CASE("the existing part counts") {
    CHECK(
        run_resumed({rest_with(good_range)}, {.offset_bytes = 5}, 10).outcome.fetched.has_value());
    const std::string chunked = "HTTP/1.1 206 Partial Content\r\n" + good_range +
                                "Transfer-Encoding: chunked\r\n\r\n5\r\n56789\r\n0\r\n\r\n";
    for (const std::string& answer : {rest_with(good_range), chunked}) {
        for (const std::uint64_t most : {9U, 5U, 4U, 0U}) {
            const auto got = run_resumed({answer}, {.offset_bytes = 5}, most);
            REQUIRE_FALSE(got.outcome.fetched.has_value());
            CHECK(got.outcome.fetched.error().code == ErrorCode::answer_too_large);
            CHECK(got.outcome.body.empty());
            CHECK(got.requests.size() == 1);
        }
    }
    // A server that sends more than its range declares gets no further.
    const auto more = run_resumed({"HTTP/1.1 206 Partial Content\r\n" + good_range +
                                   "Transfer-Encoding: chunked\r\n\r\n6\r\n567890\r\n0\r\n\r\n"},
                                  {.offset_bytes = 5}, 10);
    CHECK(more.outcome.fetched.error().code == ErrorCode::answer_too_large);
}

TEST_CASE("an interrupted remainder is not complete") {
    for (const std::string& answer :
         {"HTTP/1.1 206 Partial Content\r\n" + good_range + "Content-Length: 5\r\n\r\n567",
          "HTTP/1.1 206 Partial Content\r\n" + good_range +
              "Transfer-Encoding: chunked\r\n\r\n3\r\n567\r\n0\r\n\r\n",
          "HTTP/1.1 206 Partial Content\r\n" + good_range + "Connection: close\r\n\r\n567"}) {
        CAPTURE(answer);
        const auto got = run_resumed({answer});
        REQUIRE_FALSE(got.outcome.fetched.has_value());
        CHECK(got.outcome.fetched.error().code == ErrorCode::connection_lost);
        CHECK(got.outcome.body == "567");
    }
}

TEST_CASE("no range is requested without an existing part, and no weak tag is sent") {
    auto got = run_resumed({whole}, {.offset_bytes = 0, .etag = "\"a\""});
    CHECK(got.outcome.fetched.has_value());
    CHECK(got.requests[0].find("Range") == std::string::npos);
    for (const std::string& etag : {std::string(), std::string("W/\"a\""), std::string("a"),
                                    std::string("\"a\r\nCookie: b\""), std::string("\"a\"b\""),
                                    '"' + std::string(511, 'a') + '"'}) {
        CAPTURE(etag);
        got = run_resumed({rest_with(good_range)}, {.offset_bytes = 5, .etag = etag});
        CHECK(got.outcome.fetched.has_value());
        CHECK(has(got.requests[0], "Range: bytes=5-"));
        CHECK(got.requests[0].find("If-Range") == std::string::npos);
        CHECK(got.requests[0].find("Cookie") == std::string::npos);
    }
}

TEST_CASE("the start callback may end the fetch before its body") {
    const Server server({whole});
    const auto resolver = [](const std::string&, int) { return Result(addresses({"127.0.0.1"})); };
    FetchOptions options = options_for(server.port(), resolver);
    options.started = [](const FetchStart&) -> Result<void> {
        return Error{.code = ErrorCode::callback_failed, .message = "no"};
    };
    const auto got = run(url_of(server.port()), options);
    REQUIRE_FALSE(got.fetched.has_value());
    CHECK(got.fetched.error().code == ErrorCode::callback_failed);
    CHECK(got.fetched.error().message == "no");
    CHECK(got.body.empty());
}

TEST_CASE("an encoded body is reported as encoded, without a length") {
    const auto got = run_resumed({"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n"
                                  "Content-Length: 0\r\nETag: W/\"a\"\r\n\r\n"},
                                 {});
    REQUIRE(got.starts.size() == 1);
    CHECK(got.starts[0].is_encoded);
    CHECK_FALSE(got.starts[0].total_bytes.has_value());
    CHECK(got.starts[0].etag.empty());
}

TEST_CASE("progress includes the existing part") {
    const Server server({rest_with(good_range)});
    const auto resolver = [](const std::string&, int) { return Result(addresses({"127.0.0.1"})); };
    FetchOptions options = options_for(server.port(), resolver);
    options.resume.offset_bytes = 5;
    FetchProgress last;
    const auto sink = [](std::span<const std::byte>) -> Result<void> {
        // Makes a callback due after the piece.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        return {};
    };
    const auto turn = [&](const FetchProgress& progress) -> Result<void> {
        last = progress;
        return {};
    };
    REQUIRE(fetch(url_of(server.port()), options, sink, turn, {}).has_value());
    CHECK(last.body_bytes == 10);
    CHECK(last.expected_bytes == 10);
}

TEST_CASE("content ranges, valid and invalid") {
    const auto good = parse_content_range("bytes 5-9/10");
    REQUIRE(good.has_value());
    CHECK(good->first == 5);
    CHECK(good->last == 9);
    CHECK(good->whole == 10);
    CHECK_FALSE(parse_content_range("Bytes 0-0/*").value().whole.has_value());
    CHECK(parse_content_range("bytes 0-18446744073709551614/18446744073709551615").has_value());
    for (const char* text : {"",
                             "bytes",
                             "bytes ",
                             "bytes 5",
                             "bytes 5-",
                             "bytes 5-9",
                             "bytes 5-9/",
                             "bytes -9/10",
                             "bytes 5-/10",
                             "bytes 9-5/10",
                             "bytes 5-9/9",
                             "bytes 5-9/x",
                             "bytes 5-9/10 ",
                             "bytes  5-9/10",
                             "bytes=5-9/10",
                             "bytes\t5-9/10",
                             "bytes +5-9/10",
                             "bytes 5-9/-10",
                             "bytes 5/9-10",
                             "bytes */10",
                             "bytes 5-9/10/11",
                             "bytes 5-9,11-12/20",
                             "kb 5-9/10",
                             "bytes 5-18446744073709551616/*"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_content_range(text).has_value());
    }
}
