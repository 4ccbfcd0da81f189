// Compares the event splitter with the WHATWG standard, at every way of cutting the bytes.
#include "polymux/stream/sse.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "stream/scan.hpp"

using polymux::stream::SseEvent;
using polymux::stream::SseOptions;
using polymux::stream::SseSplitter;
using namespace std::string_view_literals;

namespace {

struct Seen {
    std::string type;
    std::string data;
    std::string id;

    bool operator==(const Seen&) const = default;
};

void read_all(SseSplitter& splitter, std::vector<Seen>& seen) {
    SseEvent event;
    while (splitter.next(event) == SseSplitter::Found::event) {
        seen.push_back(
            {std::string(event.type), std::string(event.data), splitter.last_event_id()});
    }
}

std::vector<Seen> events(std::string_view stream, std::size_t step) {
    SseSplitter splitter;
    std::vector<Seen> seen;
    for (std::size_t at = 0; at < stream.size(); at += step) {
        splitter.append(stream.substr(at, step));
        read_all(splitter, seen);
    }
    return seen;
}

std::string with_line_ends(std::string_view stream, std::string_view line_end) {
    std::string changed;
    for (const char byte : stream) {
        if (byte == '\n') {
            changed += line_end;
        } else {
            changed += byte;
        }
    }
    return changed;
}

/// Checks it whole, in steps of every size, and cut once at every place; with each kind of line
/// end.
void check(std::string_view stream, const std::vector<Seen>& expected) {
    for (const std::string_view line_end : {"\n"sv, "\r"sv, "\r\n"sv}) {
        const std::string bytes = with_line_ends(stream, line_end);
        for (std::size_t step = 1; step <= bytes.size(); ++step) {
            REQUIRE(events(bytes, step) == expected);
        }
        for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
            SseSplitter splitter;
            std::vector<Seen> seen;
            splitter.append(std::string_view(bytes).substr(0, cut));
            read_all(splitter, seen);
            splitter.append(std::string_view(bytes).substr(cut));
            read_all(splitter, seen);
            REQUIRE(seen == expected);
        }
    }
}

}  // namespace

TEST_CASE("the examples of the standard") {
    check(
        "data: This is the first message.\n\ndata: This is the second message, it\n"
        "data: has two lines.\n\ndata: This is the third message.\n\n",
        {{"", "This is the first message.", ""},
         {"", "This is the second message, it\nhas two lines.", ""},
         {"", "This is the third message.", ""}});
    check("event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\nevent: add\ndata: 113411\n\n",
          {{"add", "73857293", ""}, {"remove", "2153", ""}, {"add", "113411", ""}});
    check("data: YHOO\ndata: +2\ndata: 10\n\n", {{"", "YHOO\n+2\n10", ""}});
    check(
        ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third "
        "event\n\n",
        {{"", "first event", "1"}, {"", "second event", ""}, {"", " third event", ""}});
    check("data\n\ndata\ndata\n\ndata:", {{"", "", ""}, {"", "\n", ""}});
    check("data:test\n\ndata: test\n\n", {{"", "test", ""}, {"", "test", ""}});
}

TEST_CASE("fields, comments and a byte order mark as the standard says") {
    check(
        "\xEF\xBB\xBF"
        "data: a\n\n",
        {{"", "a", ""}});
    check(
        "data: \xEF\xBB\xBF"
        "a\n\n",
        {{"",
          "\xEF\xBB\xBF"
          "a",
          ""}});
    check(
        "\xEF\xBB"
        "data: a\n\ndata: b\n\n",
        {{"", "b", ""}});
    check(":\n:: x\n: keep-alive\n\n\n\ndata: a\n: inside\ndata: b\n\n", {{"", "a\nb", ""}});
    check("event: lost\n\ndata: a\n\n", {{"", "a", ""}});
    check("data: a\nevent: later\ndata: bbbbbbbbbbbbbbbbbbbbbbbb\nevent: last\ndata: c\n\n",
          {{"last", "a\nbbbbbbbbbbbbbbbbbbbbbbbb\nc", ""}});
    check("event: x\nevent\ndata: a\n\n", {{"", "a", ""}});
    check(" data: no field\nData: none\ndata : none\nerror: {}\n\ndata: a\n\n", {{"", "a", ""}});
    check("id: 7\ndata: a\n\ndata: b\n\nid: x\n\ndata: c\n\n",
          {{"", "a", "7"}, {"", "b", "7"}, {"", "c", "x"}});
    check("data: not whole\n", {});
    check("data: not whole", {});
}

TEST_CASE("an id with a NUL is ignored, and retry accepts only digits") {
    SseSplitter splitter;
    splitter.append("id: 1\nid: a\0b\nretry: 2500\nretry: 1e3\nretry: -1\nretry\ndata: x\n\n"sv);
    SseEvent event;
    REQUIRE(splitter.next(event) == SseSplitter::Found::event);
    CHECK(splitter.last_event_id() == "1");
    CHECK(splitter.retry_ms() == 2500);
}

TEST_CASE("the data's position is relative to the stream") {
    SseSplitter splitter;
    std::uint64_t sent = 0;
    SseEvent event;
    for (int round = 0; round < 5000; ++round) {
        const std::string line = "data: " + std::to_string(round) + "\n\n";
        splitter.append(std::string_view(line).substr(0, 3));
        CHECK(splitter.next(event) == SseSplitter::Found::nothing);
        splitter.append(std::string_view(line).substr(3));
        REQUIRE(splitter.next(event) == SseSplitter::Found::event);
        REQUIRE(event.data == std::to_string(round));
        REQUIRE(event.offset_bytes == sent + 6);
        sent += line.size();
    }
    CHECK(splitter.total_bytes() == sent);
    CHECK(splitter.offset_bytes() == sent);
}

TEST_CASE("held blocks keep their bytes") {
    SseSplitter splitter;
    std::vector<polymux::stream::BlockRef> held;
    std::vector<std::string_view> views;
    std::vector<std::string> copies;
    SseEvent event;
    for (int round = 0; round < 3000; ++round) {
        splitter.append("data: " + std::string(static_cast<std::size_t>(round % 90), 'x') +
                        std::to_string(round) + "\n\nda");
        while (splitter.next(event) == SseSplitter::Found::event) {
            views.push_back(event.data);
            copies.emplace_back(event.data);
            if (held.empty() || held.back().get() != splitter.block().get()) {
                held.push_back(splitter.block());
            }
        }
        splitter.append("ta\n\n");
        while (splitter.next(event) == SseSplitter::Found::event) CHECK(event.data.empty());
    }
    REQUIRE(views.size() == 3000);
    for (std::size_t index = 0; index < views.size(); ++index)
        REQUIRE(views[index] == copies[index]);
}

TEST_CASE("an event over the limit is detected at any read size") {
    const SseOptions options = {.max_event_bytes = 40};
    const std::string fits = "data: " + std::string(33, 'x');
    for (const std::string& line : {fits, fits + "xx", ":" + std::string(45, 'x')}) {
        const std::string stream = "data: a\n\n" + line + "\n\ndata: b\n\n";
        for (const std::size_t step :
             {std::size_t{1}, std::size_t{7}, std::size_t{41}, stream.size()}) {
            SseSplitter splitter(options);
            std::string seen;
            auto found = SseSplitter::Found::nothing;
            for (std::size_t at = 0; at < stream.size() && found != SseSplitter::Found::too_long;
                 at += step) {
                splitter.append(std::string_view(stream).substr(at, step));
                SseEvent event;
                while ((found = splitter.next(event)) == SseSplitter::Found::event) {
                    seen += std::to_string(event.data.size()) + " ";
                }
            }
            CHECK(seen == (line == fits ? "1 33 1 " : "1 "));
            CHECK((found == SseSplitter::Found::too_long) == (line != fits));
        }
    }
}

TEST_CASE("endless comments use no memory and exceed no limit") {
    SseSplitter splitter({.max_event_bytes = 1000});
    SseEvent event;
    for (int round = 0; round < 10'000; ++round) {
        splitter.append(": keep-alive\n");
        REQUIRE(splitter.next(event) == SseSplitter::Found::nothing);
    }
    CHECK(splitter.block()->capacity_bytes() < 10'000);
}

TEST_CASE("SIMD and plain searches find the same") {
    namespace plain = polymux::stream::plain;
    for (std::size_t length = 0; length < 150; ++length) {
        for (std::size_t place = 0; place <= length; ++place) {
            for (const char special :
                 {'\n', '\r', '"', '\\', '\0', '\x1f', '\x20', '\x7f', '\x80', '\xff'}) {
                std::string text(length, 'x');
                if (place < length) text[place] = special;
                text.append(polymux::stream::Block::padding_bytes, '\0');
                const char* const begin = text.data();
                const char* const end = begin + length;
                REQUIRE(polymux::stream::find_line_end(begin, end) ==
                        plain::find_line_end(begin, end));
                unsigned bits = 0;
                unsigned plain_bits = 0;
                REQUIRE(polymux::stream::find_special(begin, bits) ==
                        plain::find_special(begin, plain_bits));
                REQUIRE(bits == plain_bits);
            }
        }
    }
}
