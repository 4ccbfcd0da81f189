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
