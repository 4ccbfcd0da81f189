// The HTTP server's threads against clients that want its memory or time, or lose their response.
#include <doctest/doctest.h>

#include "front_support.hpp"

using namespace polymux;
using namespace polymux::server;
using namespace polymux::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

std::string repeated(std::string_view text, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i) all += text;
    return all;
}

/// Reads to the end of the connection, and returns how much came.
std::size_t received_bytes(Client& client) {
    return client.receive_all().size();
}

}  // namespace

TEST_CASE("requests behind an answer that nobody reads wait for it") {
    constexpr std::size_t answer_bytes = std::size_t{1} << 20;
    constexpr std::size_t requests = 200;
    std::atomic<std::size_t> answered = 0;
    RunningFront running{[&](Event& event) {
        if (event.kind != Event::Kind::request) return;
        answer(*event.exchange, std::string(answer_bytes, 'x'));
        ++answered;
    }};
    Client client(running.port());
    client.send(repeated(get, requests - 1));
    client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    std::size_t before = 0;
    do {
        before = answered;
        std::this_thread::sleep_for(200ms);
    } while (answered != before);
    CHECK(before < requests / 2);  // The buffers of both sockets hold a few of them.
    CHECK(received_bytes(client) > answer_bytes * requests);
    CHECK(answered == requests);
}

TEST_CASE("requests behind the one that is answered are not read without a limit") {
    RunningFront running{[&](Event& event) {
        if (event.kind == Event::Kind::request) answer(*event.exchange, "x");
    }};
    Client client(running.port());
    const std::string many = repeated(get, 1'000'000);
    std::thread writer([&] { client.send(many); });
    std::size_t answers = 0;
    while (answers < 2'000 && !client.receive_until("\r\n\r\nx").empty()) ++answers;
    CHECK(running.front().received_bytes() < answers * get.size() + (std::size_t{4} << 20));
    client.shut_down_both();
    writer.join();
}

TEST_CASE("an early answer that is read slowly is complete") {
    constexpr std::size_t answer_bytes = std::size_t{24} << 20;
    RunningFront running{[&](Event& event) {
        if (event.kind == Event::Kind::request)
            answer(*event.exchange, std::string(answer_bytes, 'x'), 413);
    }};
    Client client(running.port());
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\nabc");
    SUBCASE("after a pause") {
        std::this_thread::sleep_for(2500ms);
    }
    SUBCASE("with much of the body") {
        const std::string piece(std::size_t{1} << 20, 'x');
        for (int i = 0; i < 6; ++i) client.send(piece);
        std::this_thread::sleep_for(100ms);
    }
    SUBCASE("after the client has closed its sending side") {
        std::this_thread::sleep_for(100ms);
        client.shut_down();
        std::this_thread::sleep_for(100ms);
    }
    CHECK(received_bytes(client) > answer_bytes);
}

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

TEST_CASE("requests of clients that have gone count as connections until they are taken") {
    FrontOptions options;
    options.max_connections = 8;
    std::mutex blocked;
    std::atomic<int> requests = 0;
    RunningFront running{[&](Event& event) {
                             const std::scoped_lock lock(blocked);
                             if (event.kind != Event::Kind::request) return;
                             ++requests;
                         },
                         options};
    {
        const std::scoped_lock lock(blocked);
        for (int i = 0; i < 100; ++i) {
            Client client(running.port());
            client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n" +
                        std::string(59'000, 'x'));
            std::this_thread::sleep_for(2ms);
            client.reset();
        }
    }
    std::this_thread::sleep_for(300ms);
    CHECK(requests <= 10);
    Client client(running.port());
    client.send(get);
    CHECK(comes_true([&] { return requests <= 11; }));
}
