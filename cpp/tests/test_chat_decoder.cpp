// The output of a chat stream's decoder, and how it reports the end of a stream.
#include "polymux/stream/chat_decoder.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "chat_support.hpp"

using polymux::stream::ChatRole;
using polymux::stream::FinishReason;
using polymux::stream::StreamState;
using polymux::test::chunk;
using polymux::test::decode;
using polymux::test::Decoded;
using polymux::test::event;

namespace {

const std::string done = "data: [DONE]\n\n";
const std::string stop_chunk = event(chunk("", "\"stop\""));

std::string hello() {
    return event(chunk("Hel")) + event(chunk("lo")) + event(chunk(", world"));
}

}  // namespace

TEST_CASE("a stream's text, reason and end") {
    const Decoded decoded = decode(hello() + stop_chunk + done);
    CHECK(decoded.seen.text == "Hello, world");
    CHECK(decoded.seen.chunks.size() == 4);
    CHECK(decoded.end.state == StreamState::finished);
    CHECK(decode(hello() + stop_chunk).end.state == StreamState::finished);
    CHECK(decode(hello() + done).end.state == StreamState::finished);
    CHECK(decode(hello() + "data: [DONE]").end.state == StreamState::finished);
    CHECK(decode(hello() + "data:[DONE]\n").end.state == StreamState::finished);
    CHECK(decode(hello() + "data:  [DONE]\n\n").end.state == StreamState::finished);
    CHECK(decode(hello() + "data:\ndata: [DONE] \r\n\r\n").end.state == StreamState::finished);
    CHECK(decode(hello() + "data: [DON").end.state == StreamState::interrupted);
}

TEST_CASE("C20 a stream cut before its end is interrupted and keeps its text") {
    const Decoded decoded = decode(hello());
    CHECK(decoded.end.state == StreamState::interrupted);
    CHECK(decoded.seen.text == "Hello, world");
    CHECK(decoded.end.offset_bytes == hello().size());
    CHECK(decode("").end.state == StreamState::interrupted);
    CHECK(decode("\n\n\n").end.state == StreamState::interrupted);
    CHECK(decode(": keep-alive\n\n").end.state == StreamState::interrupted);
}

TEST_CASE("C21 a stream cut at any byte never looks finished and delivers whole characters") {
    const std::string stream = event(chunk("a\xC3\xA9")) + event(chunk("\xF0\x9F\x98\x80")) +
                               event(chunk("\xE4\xBD\xA0")) + stop_chunk + done;
    const std::string all = "a\xC3\xA9\xF0\x9F\x98\x80\xE4\xBD\xA0";
    const std::size_t finish = stream.size() - done.size();
    for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
        const Decoded decoded = decode(std::string_view(stream).substr(0, cut), cut % 5);
        REQUIRE(decoded.end.state ==
                (cut < finish ? StreamState::interrupted : StreamState::finished));
        REQUIRE(all.starts_with(decoded.seen.text));
        const std::size_t size = decoded.seen.text.size();
        REQUIRE((size == 0 || size == 3 || size == 7 || size == 10));
    }
}

TEST_CASE("C21 an empty finish reason ends nothing, nor does that of another choice") {
    const auto delta = [](int index, std::string_view reason) {
        return event(R"({"choices":[{"index":)" + std::to_string(index) +
                     R"(,"delta":{"content":"a","role":""},"finish_reason":)" +
                     std::string(reason) + "}]}");
    };
    const auto state = [](const std::string& stream) { return decode(stream).end.state; };
    const std::string open = delta(0, "\"\"") + delta(0, "\"\"") + delta(0, "\"\"");
    CHECK(state(open) == StreamState::interrupted);
    CHECK(state(open + delta(0, "\"stop\"")) == StreamState::finished);
    CHECK(decode(open).seen.chunks.front().ends_with("|a|0,0,0,1,0,0,0,"));

    const std::string one_ended = delta(0, "null") + delta(1, "null") + delta(1, "\"stop\"");
    CHECK(state(one_ended) == StreamState::interrupted);
    CHECK(state(one_ended + delta(0, "null") + delta(0, "null")) == StreamState::interrupted);
    CHECK(state(one_ended + delta(0, "\"length\"")) == StreamState::finished);
    CHECK(state(one_ended + done) == StreamState::finished);
    const std::string both =
        R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"},{"index":1,"delta":{},"finish_reason":)";
    CHECK(state(event(both + "null}]}")) == StreamState::interrupted);
    CHECK(state(event(both + "\"stop\"}]}")) == StreamState::finished);
    CHECK(state(delta(200, "null") + delta(0, "\"stop\"")) == StreamState::interrupted);
    CHECK(state(event(R"({"choices":[{"finish_reason":"stop"}],"choices":[{"index":0}]})")) ==
          StreamState::interrupted);
}

TEST_CASE("C22 errors inside a stream end it, in every spelling") {
    struct Case {
        std::string event;
        std::string message, type, code;
    };
    const std::vector<Case> cases = {
        {R"(data: {"error":{"message":"too busy","type":"server_error","code":"overloaded"}})",
         "too busy", "server_error", "overloaded"},
        {R"(data: {"error":{"message":"too busy","type":null,"code":503}})", "too busy", "", "503"},
        {R"(data: {"error":"too busy"})", "too busy", "", ""},
        {"event: error\n"
         R"(data: {"error":{"message":"too busy"}})",
         "too busy", "", ""},
        {"event: error\n"
         R"(data: {"message":"too busy","type":"x"})",
         "too busy", "x", ""},
        {"event: error\ndata: too busy", "too busy", "", ""},
        {R"(error: {"code":500,"message":"too busy","type":"server_error"})", "too busy",
         "server_error", "500"},
        {R"(data: {"object":"error","message":"too busy","type":"BadRequestError","code":400})",
         "too busy", "BadRequestError", "400"},
        {R"(data: {"error":"too busy","code":"overloaded","type":"x"})", "too busy", "x",
         "overloaded"},
        {R"(data: {"code":1,"type":"x","error":{"code":"overloaded","message":"too busy"}})",
         "too busy", "x", "overloaded"},
        {R"(data: {"error":null,"choices":[],"error":"too busy"})", "too busy", "", ""},
        {R"(data: {"error":{}, "object":"error"})", R"({"error":{}, "object":"error"})", "", ""},
    };
    for (const Case& one : cases) {
        CAPTURE(one.event);
        for (const std::size_t step : {0U, 1U, 3U}) {
            const Decoded decoded = decode(hello() + one.event + "\n\n" + hello() + done, step);
            CHECK(decoded.end.state == StreamState::failed);
            CHECK(decoded.end.message == one.message);
            CHECK(decoded.end.error_type == one.type);
            CHECK(decoded.end.error_code == one.code);
            CHECK(decoded.seen.text == "Hello, world");
        }
    }
    const Decoded cut = decode(hello() + R"(data: {"error":{"message":"too busy"}})");
    CHECK(cut.end.state == StreamState::failed);
    const std::string good = event(chunk("x", "null", R"(,"error":null)"));
    CHECK(decode(hello() + good + done).seen.text == "Hello, worldx");
    for (const std::string_view last : {R"({"error":"no","choices":[],"error":null})",
                                        R"({"object":"error","object":"chunk"})"}) {
        CHECK(decode(event(last) + hello() + done).end.state == StreamState::finished);
    }
}

TEST_CASE("C23 an invalid chunk ends the stream with its position") {
    for (const std::string_view bad :
         {"{", "nonsense", "[1]", "\"x\"", "{\"choices\":[}", "{\"a\":1}{\"a\":1}", "{\"a\":NaN}",
          "{\"a\":01}", "{\"a\":012345678901234567890}", "{\"a\":\"\\x\"}", "{\"a\":\"\t\"}",
          "{\"a\":\"\xC3\"}", "{\"a\":\"\xED\xA0\x80\"}", "{\"a\":\"\xC0\x80\"}", "{'a':1}",
          "{\"a\":1,}"}) {
        CAPTURE(bad);
        const Decoded decoded =
            decode(hello() + "data: " + std::string(bad) + "\n\n" + hello() + done, 11);
        CHECK(decoded.end.state == StreamState::undecodable);
        CHECK(decoded.end.offset_bytes == hello().size() + 6);
        CHECK(decoded.seen.text == "Hello, world");
    }
    for (const std::string_view good : {"1e999", "-1e-999", "99999999999999999999", "0.1e+5"}) {
        CAPTURE(good);
        const Decoded decoded =
            decode(hello() + event("{\"a\":" + std::string(good) + ",\"b\":\"\\\"1e999\"}") + done);
        CHECK(decoded.end.state == StreamState::finished);
    }
    std::string deep(3000, '[');
    deep.append(3000, ']');
    CHECK(decode(event("{\"a\":" + deep + "}")).end.state == StreamState::undecodable);
}

TEST_CASE("halves of characters split between chunks are joined, or replaced if lost") {
    struct Case {
        std::vector<std::string> parts;  // Escapes as they appear in the JSON.
        std::string text;
    };
    const std::string face = "\xF0\x9F\x98\x80";
    const std::string lost = "\xEF\xBF\xBD";
    const std::vector<Case> cases = {
        {{R"(a\ud83d)", R"(\ude00b)"}, "a" + face + "b"},
        {{R"(\uD83D)", "", R"(\uDE00\uD83D\uDE00)"}, face + face},
        {{R"(\ud83d)", R"(\ude00\ud83d)", R"(\ude00)"}, face + face},
        {{R"(a\ud83d)", "b", R"(\ude00c)"}, "a" + lost + "b" + lost + "c"},
        {{R"(a\ud83d)", "b"}, "a" + lost + "b"},
        {{R"(a\ud83d)", ""}, "a" + lost},
        {{R"(a\ud83db)", R"(\ude00)"}, "a" + lost + "b" + lost},
        {{R"(\\ud83d)", R"(\"\u00e9\ude00)"},
         R"(\ud83d)"
         "\"\xC3\xA9" +
             lost},
    };
    for (const Case& one : cases) {
        std::string stream;
        for (const std::string& part : one.parts) {
            stream += event(R"({"choices":[{"index":0,"delta":{"content":")" + part + "\"}}]}");
        }
        stream += stop_chunk + done;
        for (const std::size_t step : {std::size_t{0}, std::size_t{1}, std::size_t{7}}) {
            const Decoded decoded = decode(stream, step);
            CHECK(decoded.end.state == StreamState::finished);
            CHECK(decoded.seen.text == one.text);
            CHECK(decode(stream, step, {.templates = false}).seen == decoded.seen);
        }
    }
    const Decoded wrong = decode(event(R"({"choices":[{"delta":{"content":"\x\ud83d"}}]})"));
    CHECK(wrong.end.state == StreamState::undecodable);
    const Decoded whole = decode(R"({"choices":[{"message":{"content":"a\ud83d"}}]})");
    CHECK(whole.end.state == StreamState::finished);
    CHECK(whole.seen.text == "a");
}

TEST_CASE("C23 a chunk of more than 200 levels is refused") {
    const auto nested = [](std::size_t levels) {
        return event(R"({"choices":[],"x":)" + std::string(levels, '[') + std::string(levels, ']') +
                     "}");
    };
    CHECK(decode(nested(199) + done).end.state == StreamState::finished);
    const Decoded deep = decode(hello() + nested(200) + done);
    CHECK(deep.end.state == StreamState::undecodable);
    CHECK(deep.end.message.find("nested too deep") != std::string::npos);
    CHECK(deep.seen.text == "Hello, world");
    CHECK(decode(nested(100'000)).end.state == StreamState::undecodable);
}

TEST_CASE("C25 comments, other fields, blank data and data in several lines") {
    const std::string json = chunk("b");
    const std::size_t middle = json.find(",\"model\"") + 1;
    const std::string stream = "\xEF\xBB\xBF: hi\nretry: 10\nid: 4\n" + event(chunk("a")) +
                               "data:\n\n" +
                               "data\n\n: x\nevent: message\ndata: " + json.substr(0, middle) +
                               "\ndata: " + json.substr(middle) + "\n\ndata:" + chunk("c") +
                               "\nid: 5\n\n" + event("") + done;
    for (std::size_t step = 0; step < 40; ++step) {
        const Decoded decoded = decode(stream, step);
        CHECK(decoded.seen.text == "abc");
        CHECK(decoded.end.state == StreamState::finished);
    }
}

TEST_CASE("C26 a line without an end is refused at the limit") {
    const polymux::stream::ChatDecoderOptions options = {.max_event_bytes = std::size_t{1} << 20U};
    const std::string stream = hello() + "data: {\"" + std::string(std::size_t{2} << 20U, 'x');
    const Decoded decoded = decode(stream, 4096, options);
    CHECK(decoded.end.state == StreamState::undecodable);
    CHECK(decoded.end.message.find("1048576") != std::string::npos);
    CHECK(decoded.end.offset_bytes == hello().size());
    CHECK(decoded.seen.text == "Hello, world");
    CHECK(decode("{\"" + stream, 4096, options).end.state == StreamState::undecodable);
}

TEST_CASE("C28 data after [DONE] is ignored") {
    for (const std::size_t step : {0U, 1U, 2U}) {
        const Decoded decoded = decode(hello() + done + hello() + "data: {\n\n", step);
        CHECK(decoded.end.state == StreamState::finished);
        CHECK(decoded.seen.text == "Hello, world");
        CHECK(decoded.seen.chunks.size() == 3);
    }
}

TEST_CASE("C29 an answer that is no stream: a whole completion, an error, a page") {
    const std::string whole =
        R"({"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",)"
        R"("content":"Hello \ud83d\ude00"},"finish_reason":"stop"}],"usage":{"total_tokens":3}})";
    for (const std::size_t step : {0U, 1U, 50U}) {
        for (const std::string_view before : {"", "\n", "  ", "\t", " \r\n \r\n\t "}) {
            const Decoded decoded = decode(std::string(before) + whole + "\n", step);
            CHECK(decoded.end.state == StreamState::finished);
            CHECK(decoded.seen.text == "Hello \xF0\x9F\x98\x80");
            CHECK(decoded.seen.chunks.size() == 1);
        }
        const Decoded failed =
            decode(R"({"error":{"message":"no such model","code":"model_not_found"}})", step);
        CHECK(failed.end.state == StreamState::failed);
        CHECK(failed.end.error_code == "model_not_found");
        CHECK(decode(R"({"error": "missing token"})", step).end.message == "missing token");
        CHECK(decode(R"({"response":"Hi"})", step).seen.text == "Hi");
        CHECK(decode(R"({"detail":"Not Found"})", step).end.message == "Not Found");
        CHECK(decode(whole.substr(0, whole.size() / 2), step).end.state ==
              StreamState::undecodable);
        CHECK(decode("[]", step).end.state == StreamState::undecodable);
        const Decoded page = decode(" \n  <!DOCTYPE html><html>", step);
        CHECK(page.end.state == StreamState::undecodable);
        CHECK(page.end.message.find("web page") != std::string::npos);
    }
    // A line that begins with a blank is a field without meaning, whatever its length.
    for (const std::size_t blanks : {1U, 1023U, 1024U, 5000U}) {
        const std::string odd = std::string(blanks, ' ') + "data: no\n" + hello() + done;
        for (const std::size_t step : {0U, 1U, 50U}) {
            CHECK(decode(odd, step).end.state == StreamState::finished);
            CHECK(decode(odd, step).seen.text == "Hello, world");
        }
        CHECK(decode(std::string(blanks, ' ')).end.state == StreamState::interrupted);
    }
}

TEST_CASE("C31 chunks of other shapes are passed on") {
    const std::vector<std::string> odd = {
        R"({"id":"1","choices":[],"usage":{"total_tokens":7}})",
        R"({"unknown":{"x":[1,2.5,{"y":null}]},"choices":[{"index":3,"delta":{"content":"z"}}]})",
        R"({"choices":[{"delta":{}}]})",
        R"({"choices":[{"index":0,"delta":{"content":null,"role":"assistant"},"finish_reason":null}]})",
        R"({"choices":null})",
        R"({"choices":[null]})",
        R"({"choices":[{"index":"x","delta":"y","finish_reason":5}]})",
        R"({})",
        R"({"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]})",
        R"({"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]},)"
        R"({"type":"text","text":"part"}]}}]})",
    };
    std::string stream;
    for (const std::string& json : odd) stream += event(json);
    const Decoded decoded = decode(stream + done);
    CHECK(decoded.end.state == StreamState::finished);
    CHECK(decoded.seen.chunks.size() == odd.size());
    CHECK(decoded.seen.text == "apart");
}

TEST_CASE("C40 a content that spells events stays content") {
    const Decoded decoded =
        decode(event(chunk("\\n\\ndata: [DONE]\\n\\n")) + event(chunk("after")) + done);
    CHECK(decoded.seen.text == "\n\ndata: [DONE]\n\nafter");
    CHECK(decoded.end.state == StreamState::finished);
}

TEST_CASE("C46 a hundred thousand chunks of one byte, byte by byte, and one long chunk so") {
    std::string stream;
    for (int count = 0; count < 100'000; ++count)
        stream += event(R"({"choices":[{"delta":{"content":"x"}}]})");
    const Decoded decoded = decode(stream + done, 1);
    CHECK(decoded.seen.text == std::string(100'000, 'x'));
    const std::string text(std::size_t{4} << 20U, 'y');
    CHECK(decode(event(chunk(text)) + done, 1).seen.text == text);
}

TEST_CASE("if a member is duplicated, the last counts and nothing of the first remains") {
    const auto chunk = [](std::string_view members) {
        return decode("data: {" + std::string(members) + "}\n\ndata: [DONE]\n\n").seen;
    };
    CHECK(
        chunk(R"("choices":[{"delta":{"content":"a"}}],"choices":[{"index":1,"delta":{}}])")
            .chunks ==
        std::vector<std::string>{
            R"({"choices":[{"delta":{"content":"a"}}],"choices":[{"index":1,"delta":{}}]}||1,0,0,0,0,0,0,)"});
    CHECK(chunk(R"("choices":[{"delta":{"content":"a"}}],"choices":null)").text.empty());
    CHECK(chunk(R"("choices":[{"delta":{"content":"a"},"delta":null}])").text.empty());
    CHECK(chunk(R"("choices":[{"delta":{"content":"a","content":"b"}}])").text == "b");
    CHECK(chunk(R"("choices":[{"delta":{"content":[{"text":"a"}],"content":"b"}}])").text == "b");
    CHECK(chunk(R"("choices":[{"delta":{"content":[{"text":"a","text":"b"}]}}])").text == "b");
    CHECK(chunk(R"("choices":[{"delta":{"content":[{"text":"a","text":5}]}}])").text.empty());
}

TEST_CASE("free chat's events") {
    const Decoded decoded =
        decode(event(R"({"response": "Hel"})") + event(R"({"response": "lo"})") +
               event(R"({"response": ", you"})") + done);
    CHECK(decoded.seen.text == "Hello, you");
    CHECK(decoded.counts.matched == 2);
    CHECK(decode(event(R"({"response": "Hel"})")).end.state == StreamState::interrupted);
}

TEST_CASE("finish reasons and roles with their texts") {
    using polymux::stream::to_string;
    for (const std::string_view word :
         {"stop", "length", "tool_calls", "content_filter", "function_call"}) {
        polymux::stream::ChunkParser parser;
        std::string json = chunk("", "\"" + std::string(word) + "\"");
        json.reserve(json.size() + polymux::stream::Block::padding_bytes);
        CHECK(to_string(parser.parse(json).traits.finish_reason) == word);
    }
    polymux::stream::ChunkParser parser;
    std::string json = R"({"choices":[{"delta":{"role":"judge"},"finish_reason":"model_length"}]})";
    json.reserve(json.size() + polymux::stream::Block::padding_bytes);
    const auto& parsed = parser.parse(json);
    CHECK(parsed.traits.finish_reason == FinishReason::other);
    CHECK(parsed.finish_reason == "model_length");
    CHECK(parsed.traits.role == ChatRole::other);
    CHECK(parsed.role == "judge");
    CHECK(to_string(ChatRole::assistant) == "assistant");
}

TEST_CASE("with two alternating choices, the text is that of the first") {
    std::string stream;
    for (int round = 0; round < 20; ++round) {
        stream += event(R"({"choices":[{"index":0,"delta":{"content":"a"}}]})");
        stream += event(R"({"choices":[{"index":1,"delta":{"content":"b"}}]})");
    }
    const Decoded decoded = decode(stream + done);
    CHECK(decoded.seen.text == std::string(20, 'a'));
    CHECK(decoded.counts.parsed == 2);
}
