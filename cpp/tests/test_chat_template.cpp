// Templates change the speed of reading a stream and nothing else.
#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "chat_support.hpp"
#include "stream/chunk_tokens.hpp"
#include "stream/json_hole.hpp"

using polymux::stream::ChatDecoderOptions;
using polymux::test::chunk;
using polymux::test::decode;
using polymux::test::Decoded;
using polymux::test::event;

namespace {

const std::string done = "data: [DONE]\n\n";

/// Checks that the events are equal with and without templates, at several read sizes. Returns the
/// counts of the first.
Decoded agree(std::string_view stream) {
    const Decoded whole = decode(stream);
    for (const std::size_t step :
         {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{300}, std::size_t{4096}}) {
        REQUIRE(decode(stream, step, {.templates = false}).seen == whole.seen);
        REQUIRE(decode(stream, step).seen == whole.seen);
    }
    return whole;
}

std::string repeated(std::string (*make)(int), int count) {
    std::string stream;
    for (int index = 0; index < count; ++index) stream += event(make(index));
    return stream + done;
}

}  // namespace

TEST_CASE("a plain stream is parsed once") {
    const Decoded decoded =
        agree(repeated([](int index) { return chunk(std::to_string(index)); }, 100));
    CHECK(decoded.counts.parsed == 1);
    CHECK(decoded.counts.matched == 99);
}

TEST_CASE("CRLF line ends, and data without a leading blank, become part of templates") {
    std::string crlf;
    std::string tight;
    for (int index = 0; index < 50; ++index) {
        crlf += "data: " + chunk("x") + "\r\n\r\n";
        tight += "data:" + chunk("x") + "\n\n";
    }
    CHECK(agree(crlf + done).counts.matched == 49);
    CHECK(agree(tight + done).counts.matched == 49);
}

TEST_CASE("values that servers vary per chunk become holes after their first change") {
    const auto vary = [](int index) {
        const std::string number = std::to_string(index);
        return R"({"id":"gen-)" + number + R"(","created":)" +
               std::to_string(1'700'000'000 + index) +
               R"(,"choices":[{"index":0,"delta":{"content":"t)" + number +
               R"("},"logprobs":{"content":[{"logprob":-0.)" + std::to_string(index + 1) +
               R"(}]},"finish_reason":null}],"obfuscation":")" +
               std::string(static_cast<std::size_t>(index % 9), 'p') +
               R"(","usage":{"total_tokens":)" + number + "}}";
    };
    const Decoded decoded = agree(repeated(vary, 200));
    CHECK(decoded.counts.parsed <= 3);
    CHECK(decoded.counts.matched >= 197);
}

TEST_CASE("reasoning, tool calls and content each have their template") {
    std::string stream =
        event(R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})");
    for (int index = 0; index < 30; ++index) {
        stream += event(R"({"choices":[{"index":0,"delta":{"reasoning":"because )" +
                        std::to_string(index) + R"("}}]})");
    }
    for (int index = 0; index < 30; ++index) {
        stream += event(R"({"choices":[{"index":0,"delta":{"content":"so )" +
                        std::to_string(index) + R"("}}]})");
    }
    for (int index = 0; index < 30; ++index) {
        stream += event(
            R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":)" +
            std::to_string(index) + R"("}}]}}]})");
    }
    stream += event(chunk("", "\"tool_calls\"")) + done;
    const Decoded decoded = agree(stream);
    CHECK(decoded.counts.parsed <= 6);
    CHECK(decoded.seen.chunks.size() == 92);
}

TEST_CASE("values that decide the meaning of a chunk never become holes") {
    std::string stream;
    for (const std::string_view reason :
         {"null", "\"stop\"", "\"length\"", "\"other\"", "\"more\""}) {
        for (const std::string_view role : {"assistant", "user", "judge"}) {
            for (int index = 0; index < 3; ++index) {
                stream +=
                    event(R"({"object":"chunk","choices":[{"index":)" + std::to_string(index) +
                          R"(,"delta":{"role":")" + std::string(role) +
                          R"(","content":"x"},"finish_reason":)" + std::string(reason) + "}]}");
            }
        }
    }
    agree(stream + done);
    agree(event(R"({"object":"chunk","choices":[]})") +
          event(R"({"object":"piece","choices":[]})") +
          event(R"({"object":"error","choices":[]})") + done);
}

TEST_CASE("duplicate or escaped keys read as in the parser") {
    for (
        const std::string_view odd :
        {R"({"choices":[{"index":0,"delta":{"content":"a","content":"b"}}]})",
         R"({"choices":[{"index":0,"delta":{"c\u006fntent":"a"}}]})",
         R"({"choices":[{"index":0,"delta":{"content":"x"}}],"choices":[{"index":0,"delta":{"content":"y"}}]})",
         R"({"choices":[{"index":0,"delta":{"content":"x"},"delta":{}}]})",
         R"({"response":"r","choices":[{"index":0,"delta":{"content":"x"}}]})"}) {
        std::string stream;
        for (int index = 0; index < 5; ++index) stream += event(odd) + event(chunk("c"));
        agree(stream + done);
    }
    CHECK(decode(event(R"({"choices":[{"index":0,"delta":{"content":"a","content":"b"}}]})"))
              .seen.text == "b");
}

TEST_CASE("templates stop after eight misses and resume with a hit") {
    std::string stream;
    for (int index = 0; index < 200; ++index) {
        stream += event(R"({"k)" + std::to_string(index) +
                        R"(":1,"choices":[{"delta":{"content":"x"}}]})");
    }
    const Decoded decoded = agree(stream + done);
    CHECK(decoded.counts.learned == 8);
    CHECK(decoded.counts.parsed == 200);
}

TEST_CASE("the parser receives chunks that a template does not accept") {
    for (const std::string_view bad :
         {"\\x", "\\u12g4", "\xC3", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\t", "\x01", "\\"}) {
        CAPTURE(bad);
        std::string stream =
            event(chunk("a")) + event(chunk("b")) + event(chunk(bad)) + event(chunk("c")) + done;
        const Decoded decoded = agree(stream);
        CHECK(decoded.end.state == polymux::stream::StreamState::undecodable);
        CHECK(decoded.seen.text == "ab");
    }
    for (const std::string_view half : {"\\ud800", "\\udc00", "\\ud800\\u0041"}) {
        CAPTURE(half);
        const Decoded decoded =
            agree(event(chunk("a")) + event(chunk(half)) + event(chunk("c")) + done);
        CHECK(decoded.end.state == polymux::stream::StreamState::finished);
        CHECK(decoded.counts.parsed >= 2);
    }
    for (const std::string_view good :
         {"\\\"", "\\\\", "\\/\\b\\f\\n\\r\\t", "\\u0000", "\\u00e9", "\\u4F60", "\\uD83D\\uDE00",
          "\xC3\xA9", "\xF0\x9F\x98\x80", "\x7f", "\\n\\n", "0123456789abcdef\\n0123456789"}) {
        const Decoded decoded =
            agree(event(chunk("a")) + event(chunk(good)) + event(chunk(good)) + done);
        CHECK(decoded.counts.parsed == 1);
    }
}

TEST_CASE("numbers in holes are those of JSON") {
    const auto accepted = [](std::string text) {
        text += ',';
        text.append(polymux::stream::Block::padding_bytes, '\0');
        const char* const end = polymux::stream::read_number(text.data());
        return end != nullptr && *end == ',';
    };
    for (const std::string_view good :
         {"0", "-0", "1", "12345678901234567", "-1.5", "0.1", "1e5", "1E-05", "2.5e+99"}) {
        CHECK(accepted(std::string(good)));
    }
    for (const std::string_view bad : {"", "-", "01", "-01", "1.", ".5", "1e", "1e+", "1e999",
                                       "123456789012345678", "NaN", "+1", "0x1", "1 ", "--1"}) {
        CAPTURE(bad);
        CHECK_FALSE(accepted(std::string(bad)));
    }
}

TEST_CASE("any mutation of a stream reads the same with templates and without") {
    std::mt19937 random(20'261'121);  // NOLINT(bugprone-random-generator-seed)
    const auto below = [&random](std::size_t bound) {
        return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
    };
    const std::vector<std::string> pieces = {"\"",
                                             "\\",
                                             "\\u",
                                             "\\ud83d\\ude00",
                                             "{",
                                             "}",
                                             "[",
                                             "]",
                                             ":",
                                             ",",
                                             "0",
                                             "-1.5e3",
                                             "null",
                                             "\n",
                                             "\r",
                                             "\r\n",
                                             "\n\n",
                                             "data: ",
                                             "event: error\n",
                                             "data: [DONE]\n\n",
                                             "\xC3\xA9",
                                             "\x80",
                                             "\xF0",
                                             " ",
                                             "\"content\"",
                                             "\"error\"",
                                             "\"x\"",
                                             std::string(1, '\0')};
    for (int round = 0; round < 3000; ++round) {
        std::string stream;
        for (int index = 0; index < 12; ++index) {
            stream += event(chunk(std::to_string(index), index == 9 ? "\"stop\"" : "null",
                                  index % 2 == 0 ? "" : ",\"n\":" + std::to_string(round + index)));
        }
        for (std::size_t change = 0; change < 1 + below(3); ++change) {
            const std::size_t at = below(stream.size());
            switch (below(3)) {
                case 0:
                    stream.erase(at, 1 + below(8));
                    break;
                case 1:
                    stream.insert(at, pieces[below(pieces.size())]);
                    break;
                default:
                    stream[at] = static_cast<char>(below(256));
                    break;
            }
        }
        const ChatDecoderOptions plain = {.templates = false};
        const std::size_t step = 1 + below(400);
        REQUIRE(decode(stream, step).seen == decode(stream, 0, plain).seen);
    }
}

TEST_CASE("tokens of a chunk have the right positions") {
    const std::string json =
        R"({"a" : [1, -2.5e3 ,"x\"y"], "choices":[ {"delta":{"content":"t"},"index":7} ], "e":{} , "f":[]})";
    std::vector<polymux::stream::Token> tokens;
    REQUIRE(polymux::stream::list_tokens(json, tokens));
    std::vector<std::string> texts;
    for (const auto& token : tokens) texts.push_back(json.substr(token.offset, token.bytes));
    CHECK(texts == std::vector<std::string>{"1", "-2.5e3", "x\\\"y", "t", "7"});
    CHECK(tokens[3].use == polymux::stream::TokenUse::content);
    CHECK(tokens[4].use == polymux::stream::TokenUse::fixed);
    CHECK_FALSE(polymux::stream::list_tokens(R"({"a":1,"a":2})", tokens));
    CHECK_FALSE(polymux::stream::list_tokens(R"({"\u0061":1})", tokens));
    CHECK_FALSE(polymux::stream::list_tokens(R"([[[[[[[[[[[[[[1]]]]]]]]]]]]]])", tokens));
}
