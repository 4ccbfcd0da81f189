// Messages that implementations read in different ways, by sections of RFC 9112 and RFC 9110. Each
// is rejected, for any division of the input, with its code and status.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "http1_support.hpp"

using polymux::http1::Limits;
using polymux::http1::MessageKind;
using polymux::http1::Refusal;
using polymux::testing::read_http1;
using namespace std::string_literals;
using namespace std::string_view_literals;

namespace {

struct Case {
    Refusal refusal;
    int status;
    std::string message;
};

const std::string get = "GET / HTTP/1.1\r\nHost: h\r\n";
const std::string post = "POST / HTTP/1.1\r\nHost: h\r\n";
const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
const std::string ok = "HTTP/1.1 200 OK\r\n";
const std::string next = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";

void check(MessageKind kind, const std::vector<Case>& cases) {
    for (const Case& one : cases) {
        CAPTURE(one.message);
        const std::string bytes = one.message + next;
        const std::string report = read_http1(kind, bytes, {}, [&] { return bytes.size(); });
        const std::string refused = "refused:" + std::string(to_string(one.refusal)) + "]";
        CHECK(report.find(refused) != std::string::npos);
        CHECK(report.find("/smuggled") == std::string::npos);
        CHECK(status_of(one.refusal) == one.status);
        for (std::size_t step = 1; step < bytes.size() && step < 200; ++step) {
            REQUIRE(read_http1(kind, bytes, {}, [&] { return step; }) == report);
        }
    }
}

}  // namespace

TEST_CASE("RFC 9112, 2.2: message parsing") {
    check(MessageKind::request,
          {
              {Refusal::bare_lf, 400, "GET / HTTP/1.1\nHost: h\n\n"},
              {Refusal::bare_lf, 400, "GET / HTTP/1.1\r\nHost: h\n\r\n"},
              {Refusal::bare_lf, 400, get + "A: b\r\n\n"},
              {Refusal::bare_lf, 400, "\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::bare_lf, 400, "GET /x\nHost: a\r\nContent-Length: 5\r\n\r\nhello"},
              {Refusal::bare_cr, 400, get + "A: b\rC: d\r\n\r\n"},
              {Refusal::bare_cr, 400, get + "A: \rTransfer-Encoding: chunked\r\n\r\n"},
              {Refusal::bare_cr, 400, get + "A: b\r\r\n\r\n"},
              {Refusal::bare_cr, 400, "GET /\rx HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::bare_cr, 400, get + "\rX\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::folded_field, 400, "GET / HTTP/1.1\r\n Host: h\r\n\r\n"},
          });
}

TEST_CASE("RFC 9112, 2.3: versions") {
    check(MessageKind::request,
          {
              {Refusal::unsupported_version, 505, "GET / HTTP/2.0\r\nHost: h\r\n\r\n"},
              {Refusal::unsupported_version, 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
              {Refusal::unsupported_version, 505, "GET / HTTP/1.2\r\nHost: h\r\n\r\n"},
              {Refusal::unsupported_version, 505, "GET / HTTP/0.9\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "GET / http/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "GET / HTTP/1.10\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "GET / HTTP/1\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "GET / HTTP/+1.1\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "GET / RTSP/1.0\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "GET / ICE/1.0\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "GET /\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "GET\r\nHost: h\r\n\r\n"},
          });
}

TEST_CASE("RFC 9112, 3 and 3.1: request lines and methods") {
    check(MessageKind::request,
          {
              {Refusal::invalid_target, 400, "GET  / HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_target, 400, "GET /  HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_target, 400, "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "GET / HTTP/1.1 \r\nHost: h\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "GET / HTTP/1.1\t\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_method, 400, " GET / HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_method, 400, "GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_method, 400, "GE(T / HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_method, 400, "G\xC3\x89T / HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::unknown_method, 501, "get / HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::unknown_method, 501, "BREW / HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::unknown_method, 501, "PROPFIND / HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::unknown_method, 501, "CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::control_character, 400, "GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n"s},
              {Refusal::control_character, 400, "\x16\x03\x01\x02\x00\x01"s},
          });
}

TEST_CASE("RFC 9112, 3.2: targets and Host") {
    check(MessageKind::request,
          {
              {Refusal::invalid_target, 400, "GET * HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_target, 400, "GET h:80 HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_target, 400, "GET a/b HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_target, 400, "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_target, 400,
               "GET /\x7f HTTP/1.1\r\nHost: h\r\n\r\n"s.replace(5, 1, "\xe9")},
              {Refusal::invalid_target, 400, "GET http:// HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_target, 400, "GET http:///a HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_target, 400, "GET http://a@b/ HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::invalid_target, 400, "GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n"},
              {Refusal::missing_host, 400, "GET / HTTP/1.1\r\n\r\n"},
              {Refusal::missing_host, 400, "GET http://h/ HTTP/1.1\r\n\r\n"},
              {Refusal::several_hosts, 400, get + "Host: h\r\n\r\n"},
              {Refusal::several_hosts, 400, get + "hOST: other\r\n\r\n"},
              {Refusal::several_hosts, 400, "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"},
              {Refusal::invalid_host, 400, "GET / HTTP/1.1\r\nHost:\r\n\r\n"},
              {Refusal::invalid_host, 400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"},
              {Refusal::invalid_host, 400, "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"},
              {Refusal::invalid_host, 400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
              {Refusal::invalid_host, 400, "GET / HTTP/1.1\r\nHost: a\\b\r\n\r\n"},
              {Refusal::invalid_host, 400, "GET / HTTP/1.1\r\nHost: a?b\r\n\r\n"},
              {Refusal::invalid_host, 400, "GET / HTTP/1.1\r\nHost: a#b\r\n\r\n"},
              {Refusal::invalid_host, 400, "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n"},
              {Refusal::invalid_host, 400, "GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n"},
              {Refusal::invalid_host, 400, "GET / HTTP/1.1\r\nHost: :80\r\n\r\n"},
              {Refusal::invalid_host, 400, "GET / HTTP/1.1\r\nHost: a%zz\r\n\r\n"},
              {Refusal::invalid_host, 400, "GET / HTTP/1.1\r\nHost: a%4\r\n\r\n"},
              {Refusal::invalid_host, 400, "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"},
              {Refusal::invalid_host, 400, "GET / HTTP/1.1\r\nHost: []\r\n\r\n"},
              {Refusal::invalid_host, 400, "GET / HTTP/1.1\r\nHost: [::1]a\r\n\r\n"},
              {Refusal::invalid_host, 400, "GET / HTTP/1.1\r\nHost: \xc3\xa9\r\n\r\n"},
              {Refusal::invalid_host, 400, "GET / HTTP/1.1\r\nHost: a:123456\r\n\r\n"},
          });
}

TEST_CASE("RFC 9112, 4: status lines") {
    check(MessageKind::response,
          {
              {Refusal::invalid_start_line, 400, "HTTP/1.1  200 OK\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "HTTP/1.1 20 OK\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "HTTP/1.1 2000 OK\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "HTTP/1.1 099 OK\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "HTTP/1.1 +20 OK\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "HTTP/1.1 200OK\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "\r\nHTTP/1.1 200 OK\r\n\r\n"},
              {Refusal::invalid_start_line, 400, "ICY 200 OK\r\n\r\n"},
              {Refusal::unsupported_version, 505, "HTTP/2.0 200 OK\r\n\r\n"},
              {Refusal::bare_lf, 400, "HTTP/1.1 200 OK\n\n"},
              {Refusal::control_character, 400, "HTTP/1.1 200 O\0K\r\n\r\n"s},
          });
}

TEST_CASE("RFC 9112, 5: fields") {
    check(MessageKind::request,
          {
              {Refusal::invalid_field_name, 400, get + "A : b\r\n\r\n"},
              {Refusal::invalid_field_name, 400, get + "Content-Length : 5\r\n\r\n"},
              {Refusal::invalid_field_name, 400, get + "Content-Length\t: 5\r\n\r\n"},
              {Refusal::invalid_field_name, 400, get + ": b\r\n\r\n"},
              {Refusal::invalid_field_name, 400, get + "A(b: c\r\n\r\n"},
              {Refusal::invalid_field_name, 400, get + "A b: c\r\n\r\n"},
              {Refusal::invalid_field_name, 400, get + "\"A\": c\r\n\r\n"},
              {Refusal::invalid_field_name, 400, get + "\xc3\xa9: c\r\n\r\n"},
              {Refusal::invalid_field, 400, get + "A\r\n\r\n"},
              {Refusal::invalid_field, 400, get + "Transfer-Encoding\r\n\r\n"},
              {Refusal::folded_field, 400, get + "A: b\r\n c\r\n\r\n"},
              {Refusal::folded_field, 400, get + "A: b\r\n\tc\r\n\r\n"},
              {Refusal::invalid_transfer_encoding, 400,
               get + "Transfer-Encoding:\r\n chunked\r\n\r\n"},
              {Refusal::folded_field, 400, get + "A: b\r\n \r\n\r\n"},
              {Refusal::control_character, 400, get + "A: b\0c\r\n\r\n"s},
              {Refusal::control_character, 400, get + "A: \x01\r\n\r\n"},
              {Refusal::control_character, 400, get + "A: \x7f\r\n\r\n"},
              {Refusal::control_character, 400, get + "A: \x0b\r\n\r\n"},
              {Refusal::control_character, 400, get + "A: \x1b[0m\r\n\r\n"},
              {Refusal::control_character, 400, get + "A\0: b\r\n\r\n"s},
          });
    check(MessageKind::response,
          {
              {Refusal::folded_field, 400, ok + "A: b\r\n c\r\n\r\n"},
              {Refusal::invalid_field_name, 400, ok + "Content-Length : 0\r\n\r\n"},
          });
}

TEST_CASE("RFC 9112, 6.1: Transfer-Encoding") {
    const auto with = [](std::string_view value) {
        return post + "Transfer-Encoding:" + std::string(value) + "\r\n\r\n0\r\n\r\n";
    };
    std::vector<Case> cases;
    for (const auto value :
         {" xchunked"sv, " chunkedx"sv, " chunked, identity"sv, " chunked, gzip"sv, " identity"sv,
          " gzip"sv, ""sv, " chunked;a=b"sv, " \"chunked\""sv, " chunked, chunked"sv,
          " , chunked"sv, " chunked,"sv, " chunked chunked"sv, " gzip chunked"sv,
          " chunk\xc3\xa9"sv, " gzip, chunked, chunked"sv, " chun ked"sv}) {
        cases.push_back({Refusal::invalid_transfer_encoding, 400, with(value)});
    }
    cases.push_back({Refusal::unsupported_transfer_encoding, 501, with(" gzip, chunked")});
    cases.push_back({Refusal::unsupported_transfer_encoding, 501, with(" a;b=c,d ,\tchunked")});
    cases.push_back({Refusal::invalid_transfer_encoding, 400,
                     post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"});
    cases.push_back({Refusal::invalid_transfer_encoding, 400,
                     post + "Transfer-Encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n"});
    cases.push_back({Refusal::invalid_transfer_encoding, 400,
                     "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"});
    check(MessageKind::request, cases);
    check(MessageKind::response,
          {
              {Refusal::invalid_transfer_encoding, 400, ok + "Transfer-Encoding: gzip\r\n\r\n"},
              {Refusal::ambiguous, 400, ok + "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n"},
              {Refusal::invalid_transfer_encoding, 400,
               "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
              {Refusal::invalid_transfer_encoding, 400,
               "HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
              {Refusal::invalid_transfer_encoding, 400,
               "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
          });
}

TEST_CASE("a head that llhttp reads differently is never reported") {
    const std::string bytes = ok + "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n";
    CHECK(read_http1(MessageKind::response, bytes, {}, [&] { return bytes.size(); }) ==
          "[refused:ambiguous]");
}

TEST_CASE("RFC 9112, 6.2 and 6.3: Content-Length") {
    std::vector<Case> cases;
    for (const auto value : {"+5"sv, "-5"sv, "0x5"sv, "5 5"sv, "5;"sv, "5.0"sv, "a"sv, ""sv, "\t"sv,
                             "9223372036854775808"sv, "18446744073709551621"sv,
                             "00000000000000000005"sv, "\xef\xbc\x95"sv, "5_0"sv}) {
        cases.push_back({Refusal::invalid_content_length, 400,
                         post + "Content-Length: " + std::string(value) + "\r\n\r\nhello"});
    }
    for (const auto value : {"5, 5"sv, "5,6"sv, "5,"sv, ",5"sv}) {
        cases.push_back({Refusal::several_content_lengths, 400,
                         post + "Content-Length: " + std::string(value) + "\r\n\r\nhello"});
    }
    for (const auto other : {"5"sv, "6"sv, "0"sv}) {
        cases.push_back({Refusal::several_content_lengths, 400,
                         post + "Content-Length: 5\r\ncontent-length: " + std::string(other) +
                             "\r\n\r\nhello"});
    }
    cases.push_back({Refusal::length_and_transfer_encoding, 400,
                     post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"});
    cases.push_back({Refusal::length_and_transfer_encoding, 400,
                     post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"});
    cases.push_back({Refusal::length_and_transfer_encoding, 400,
                     post + "Content-Length: 0\r\nTransfer-Encoding: identity\r\n\r\n"});
    check(MessageKind::request, cases);
    check(MessageKind::response,
          {
              {Refusal::several_content_lengths, 400,
               ok + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx"},
              {Refusal::length_and_transfer_encoding, 400,
               ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
          });
}

TEST_CASE("RFC 9112, 7.1: chunks, extensions and trailers") {
    std::vector<Case> cases;
    for (const auto size :
         {"g"sv, ""sv, "0x5"sv, "+5"sv, "-1"sv, "5 "sv, " 5"sv, "5\t"sv, "5 ;a"sv, "5,"sv, "5.0"sv,
          "00000000000000005"sv, "10000000000000000"sv, "fffffffffffffffff"sv, "\xef\xbc\x95"sv}) {
        cases.push_back({Refusal::invalid_chunk_size, 400,
                         chunked + std::string(size) + "\r\nhello\r\n0\r\n\r\n"});
    }
    for (const auto extension :
         {";"sv, ";;a"sv, ";a="sv, ";a=\"b"sv, ";a=b c"sv, "; a"sv, ";a =b"sv, ";a= b"sv, ";(a"sv,
          ";a=\"b\"c"sv, ";a=\"\\"sv, ";a;"sv}) {
        cases.push_back({Refusal::invalid_chunk_extension, 400,
                         chunked + "5" + std::string(extension) + "\r\nhello\r\n0\r\n\r\n"});
    }
    std::string flood;
    for (int chunk = 0; chunk < 1000; ++chunk) flood += "1;abcd\r\nx\r\n";
    cases.push_back({Refusal::chunk_extensions_too_large, 400, chunked + flood});
    cases.push_back({Refusal::bare_lf, 400, chunked + "5\nhello\r\n0\r\n\r\n"});
    cases.push_back({Refusal::bare_lf, 400, chunked + "5;a\nhello\r\n0\r\n\r\n"});
    cases.push_back({Refusal::bare_lf, 400, chunked + "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n"});
    cases.push_back({Refusal::bare_cr, 400, chunked + "5\rhello\r\n0\r\n\r\n"});
    cases.push_back({Refusal::control_character, 400, chunked + "5;a=\0\r\nhello\r\n0\r\n\r\n"s});
    for (const auto end : {"\n"sv, "x\r\n"sv, ""sv, "\r"sv, "\r\r\n"sv, "0\r\n"sv}) {
        cases.push_back({Refusal::invalid_chunk_end, 400,
                         chunked + "5\r\nhello" + std::string(end) + "0\r\n\r\n"});
    }
    for (const auto trailer : {"Content-Length: 5"sv, "transfer-encoding: chunked"sv}) {
        cases.push_back(
            {Refusal::invalid_trailer, 400, chunked + "0\r\n" + std::string(trailer) + "\r\n\r\n"});
    }
    cases.push_back({Refusal::invalid_field, 400, chunked + "0\r\nGET / HTTP/1.1\r\n\r\n"});
    cases.push_back({Refusal::invalid_field_name, 400, chunked + "0\r\nA : b\r\n\r\n"});
    cases.push_back({Refusal::folded_field, 400, chunked + "0\r\nA: b\r\n c\r\n\r\n"});
    cases.push_back({Refusal::folded_field, 400, chunked + "0\r\n A: b\r\n\r\n"});
    cases.push_back({Refusal::bare_lf, 400, chunked + "0\r\nA: b\n\r\n"});
    cases.push_back({Refusal::bare_lf, 400, chunked + "0\r\n\n"});
    cases.push_back({Refusal::control_character, 400, chunked + "0\r\nA: \0\r\n\r\n"s});
    check(MessageKind::request, cases);
}

TEST_CASE("the bytes after the last message of a connection are dropped") {
    const std::string bytes = get + "Connection: close\r\n\r\n" + next + "\r\n\0garbage"s;
    const std::string report =
        read_http1(MessageKind::request, bytes, {}, [&] { return bytes.size(); });
    CHECK(report.find("/smuggled") == std::string::npos);
    CHECK(report.find("refused") == std::string::npos);
}
