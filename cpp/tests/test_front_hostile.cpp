// The HTTP server's threads against clients that want its memory or time, or lose their response.
#include <doctest/doctest.h>

#include "front_support.hpp"

using namespace polymux;
using namespace polymux::server;
using namespace polymux::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

}  // namespace

TEST_CASE("an empty line costs no other client its own") {
    RunningFront running{[](Event& event) {
        if (event.kind == Event::Kind::request) answer(*event.exchange, "x");
    }};
    Client first(running.port());
    first.send("\r\n");
    std::this_thread::sleep_for(100ms);
    Client second(running.port());
    second.send("\r\n" + std::string(get));
    CHECK(second.receive_until("\r\n\r\nx").starts_with("HTTP/1.1 200"));
}

TEST_CASE("HTTP/1.0 gets no chunks, not even announced") {
    RunningFront running{[](Event& event) {
        if (event.kind != Event::Kind::request) return;
        CHECK(event.exchange->start(200, {}) == "");
        event.exchange->write("x", true);
    }};
    Client client(running.port());
    client.send("HEAD / HTTP/1.0\r\n\r\n");
    const std::string all = client.receive_all();
    CHECK(all.starts_with("HTTP/1.1 200"));
    CHECK(all.find("chunked") == std::string::npos);
    CHECK(all.ends_with("\r\n\r\n"));
}

TEST_CASE("a drained front gets no new connections") {
    RunningFront running{[](Event& event) {
        if (event.kind == Event::Kind::request) answer(*event.exchange, "x");
    }};
    running.front().drain();
    std::this_thread::sleep_for(100ms);
    Client client(running.port());
    std::this_thread::sleep_for(200ms);
    CHECK(running.front().connections() == 0);
}
