// Bytes of the HTTP/1.1 writer, and what it rejects. The parser reads random messages back.
#include "polymux/http1/writer.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "http1_support.hpp"

using polymux::http1::BodyFraming;
using polymux::http1::ChunkPieces;
using polymux::http1::Field;
using polymux::http1::HeadWriter;
using polymux::http1::MessageKind;
using polymux::testing::Http1Fields;
using polymux::testing::Http1Message;
using polymux::testing::parse_http1;
using polymux::testing::write_http1;
using namespace std::string_literals;
using namespace std::string_view_literals;

namespace {

/// Random valid messages.
class Messages {
public:
    explicit Messages(std::uint32_t seed) : random_(seed) {}

    Http1Message request() {
        static constexpr std::string_view methods[] = {"GET", "POST", "PUT", "OPTIONS", "DELETE"};
        Http1Message message;
        message.method = methods[below(std::size(methods))];
        message.target = below(4) == 0 ? "http://host" + target() : target();
        message.fields = fields();
        const std::size_t at = below(message.fields.size() + 1);
        message.fields.insert(message.fields.begin() + static_cast<std::ptrdiff_t>(at),
                              {"Host", "host:" + std::to_string(below(65536))});
        add_body(message);
        return message;
    }

    Http1Message response() {
        static constexpr int statuses[] = {100, 103, 200, 204, 206, 304, 404, 500, 599, 999};
        Http1Message message;
        message.status = statuses[below(std::size(statuses))];
        message.fields = fields();
        const bool has_body =
            message.status >= 200 && message.status != 204 && message.status != 304;
        if (has_body) {
            do add_body(message);
            while (message.framing == BodyFraming::none);
        }
        return message;
    }

    std::size_t below(std::size_t limit) {
        return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
    }

private:
    std::string text(std::string_view letters, std::size_t min_size, std::size_t max_size) {
        std::string result(min_size + below(max_size - min_size + 1), ' ');
        for (char& letter : result) letter = letters[below(letters.size())];
        return result;
    }

    std::string target() { return "/" + text("abc%2F?&=;~!|{}\"<>\\^`[]:@", 0, 30); }

    Http1Fields fields() {
        Http1Fields result;
        for (std::size_t count = below(8); count > 0; --count) {
            const std::string value =
                text("aZ0 \t!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\x80\xff", 0, 60);
            const std::size_t begin = value.find_first_not_of(" \t");
            const std::size_t end = value.find_last_not_of(" \t");
            result.emplace_back(
                "X" + text("abcXYZ019!#$%&'*+-.^_`|~", 0, 20),
                begin == std::string::npos ? "" : value.substr(begin, end + 1 - begin));
        }
        return result;
    }

    void add_body(Http1Message& message) {
        message.body = text("\0\r\n0123456789abcdef;"sv, 0, 200);
        switch (below(3)) {
            case 0:
                message.framing = BodyFraming::length;
                break;
            case 1:
                message.framing = BodyFraming::chunked;
                message.trailers = fields();
                break;
            default:
                message.body.clear();
                break;
        }
    }

    std::mt19937 random_;
};

std::string failure_of(HeadWriter& writer) {
    CHECK(!writer.finish());
    return std::string(writer.failure());
}

}  // namespace

TEST_CASE("heads, chunks and trailers as bytes") {
    std::string out = "before";
    HeadWriter head = HeadWriter::response(out, 200);
    head.field("Date", polymux::http1::http_date(784111777).text()).field("A", " b\t").chunked();
    REQUIRE(head.finish());
    polymux::http1::append_chunk(out, "0123456789abcdefg");
    polymux::http1::append_chunk(out, "");
    const Field trailer = {"Digest", "x"};
    REQUIRE(polymux::http1::append_last_chunk(out, {&trailer, 1}));
    CHECK(out ==
          "beforeHTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nA: b\r\n"
          "Transfer-Encoding: chunked\r\n\r\n11\r\n0123456789abcdefg\r\n0\r\nDigest: x\r\n\r\n");

    out.clear();
    HeadWriter request = HeadWriter::request(out, "POST", "/a");
    request.field("Host", "h").content_length(18446744073709551615U).close().close();
    REQUIRE(request.finish());
    CHECK(out ==
          "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551615\r\n"
          "Connection: close\r\n\r\n");
}

TEST_CASE("dates at the edges of days, years and leap years") {
    const auto date = [](std::int64_t unix_s) {
        return std::string(polymux::http1::http_date(unix_s).text());
    };
    CHECK(date(0) == "Thu, 01 Jan 1970 00:00:00 GMT");
    CHECK(date(951782399) == "Mon, 28 Feb 2000 23:59:59 GMT");
    CHECK(date(951782400) == "Tue, 29 Feb 2000 00:00:00 GMT");
    CHECK(date(4102444799) == "Thu, 31 Dec 2099 23:59:59 GMT");
    CHECK(date(253402300799) == "Fri, 31 Dec 9999 23:59:59 GMT");
}

TEST_CASE("pieces of a chunk equal the chunk in one buffer") {
    for (const unsigned size : {1U, 15U, 16U, 255U, 70000U}) {
        const std::string data(size, 'x');
        const ChunkPieces chunk(data);
        std::string joined;
        for (const iovec& piece : chunk.pieces()) {
            joined.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
        }
        CHECK(chunk.pieces()[1].iov_base == data.data());
        std::string copied;
        polymux::http1::append_chunk(copied, data);
        CHECK(joined == copied);
    }
}

TEST_CASE("nothing can be added to a head through a name or a value") {
    std::string out = "before";
    for (const auto bad : {"a\r\nB: c"sv, "a\nb"sv, "a\rb"sv, "a\0b"sv, "a\x01"sv, "a\x7f"sv}) {
        HeadWriter value = HeadWriter::response(out, 200);
        value.content_length(0).field("A", bad);
        CHECK(!failure_of(value).empty());
        CHECK(out == "before");
        HeadWriter name = HeadWriter::response(out, 200);
        name.content_length(0).field(bad, "x");
        CHECK(!failure_of(name).empty());
        HeadWriter target = HeadWriter::request(out, "GET", bad);
        CHECK(!failure_of(target.field("Host", "h")).empty());
        HeadWriter method = HeadWriter::request(out, bad, "/");
        CHECK(!failure_of(method.field("Host", "h")).empty());
        HeadWriter host = HeadWriter::request(out, "GET", "/");
        CHECK(!failure_of(host.field("Host", bad)).empty());
        const Field trailer = {"A", bad};
        CHECK(!polymux::http1::append_last_chunk(out, {&trailer, 1}));
        const Field trailer_name = {bad, "a"};
        CHECK(!polymux::http1::append_last_chunk(out, {&trailer_name, 1}));
        CHECK(out == "before");
    }
    for (const auto name : {""sv, "a b"sv, "a:"sv, " a"sv, "\xc3\xa9"sv}) {
        HeadWriter head = HeadWriter::response(out, 200);
        CHECK(!failure_of(head.content_length(0).field(name, "x")).empty());
    }
    const Field length = {"Content-Length", "5"};
    CHECK(!polymux::http1::append_last_chunk(out, {&length, 1}));
    CHECK(out == "before");
}

TEST_CASE("a head has exactly one framing") {
    std::string out;
    const auto response = [&](int status) { return HeadWriter::response(out, status); };
    const auto fails = [](HeadWriter writer) { return !failure_of(writer).empty(); };
    CHECK(fails(response(200).content_length(1).chunked()));
    CHECK(fails(response(200).chunked().content_length(1)));
    CHECK(fails(response(200).content_length(1).content_length(1)));
    CHECK(fails(response(200).field("content-length", "1")));
    CHECK(fails(response(200).chunked().field("Transfer-encoding", "gzip")));
    CHECK(fails(response(200)));
    CHECK(fails(response(204).content_length(0)));
    CHECK(fails(response(100).chunked()));
    CHECK(fails(response(99).content_length(0)));
    CHECK(fails(response(1000).content_length(0)));
    CHECK(fails(HeadWriter::request(out, "GET", "/")));
    CHECK(fails(HeadWriter::request(out, "GET", "/").field("Host", "a").field("host", "a")));
    CHECK(fails(HeadWriter::request(out, "GET", "/").field("Host", "a").until_close()));
    CHECK(out.empty());
    HeadWriter until_close = response(200).until_close();
    CHECK(until_close.finish());
    CHECK(out == "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
}

TEST_CASE("random messages are read as they were written") {
    Messages random(7);
    for (int round = 0; round < 2000; ++round) {
        const MessageKind kind = round % 2 == 0 ? MessageKind::request : MessageKind::response;
        std::vector<Http1Message> messages;
        std::string bytes;
        for (std::size_t count = 1 + random.below(4); count > 0; --count) {
            messages.push_back(kind == MessageKind::request ? random.request() : random.response());
            REQUIRE(write_http1(bytes, messages.back(), 1 + random.below(50)).empty());
        }
        CAPTURE(bytes);
        REQUIRE(parse_http1(kind, bytes, {}) == messages);
    }
}
