// The HTTP server's threads, with raw sockets as clients.
#include "polymux/server/front.hpp"

#include <doctest/doctest.h>

#include <arpa/inet.h>

#include <cstring>
#include <map>
#include <optional>
#include <random>

#include "front_support.hpp"
#include "server/connection_limit.hpp"
#include "server/deadlines.hpp"

using namespace polymux;
using namespace polymux::server;
using polymux::http1::Field;
using namespace polymux::testing;
using namespace std::chrono_literals;

namespace {

/// Answers a complete request with its method, target and body.
class Echo {
public:
    void operator()(Event& event) {
        if (event.kind == Event::Kind::disconnected) {
            bodies_.erase(event.exchange.get());
            return;
        }
        Exchange& exchange = *event.exchange;
        if (exchange.is_ended()) return;
        Exchange::Body taken = exchange.take_body();
        std::string& body = bodies_[&exchange];
        body += taken.bytes;
        if (!taken.is_complete) return;
        const std::string all = std::string(exchange.head().method) + " " +
                                std::string(exchange.head().target) + " " + body;
        bodies_.erase(&exchange);
        answer(exchange, all);
    }

private:
    std::map<Exchange*, std::string> bodies_;
};

constexpr std::string_view get = "GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n";

std::string body_of(const std::string& response) {
    return response.substr(response.find("\r\n\r\n") + 4);
}

std::size_t count(std::string_view text, std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string_view::npos;
         at = text.find(part, at + 1))
        ++found;
    return found;
}

}  // namespace

TEST_CASE("requests of a connection are answered in order") {
    RunningFront running{Echo()};
    Client client(running.port());
    client.send(get);
    CHECK(client.receive_until("GET /a?b ").starts_with("HTTP/1.1 200 OK\r\nDate: "));
    std::string pipelined;
    for (int i = 0; i < 100; ++i) {
        pipelined +=
            "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc";
    }
    pipelined += "GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    client.send(pipelined);
    for (int i = 0; i < 100; ++i) {
        const std::string wanted = "POST /" + std::to_string(i) + " abc";
        CHECK(client.receive_until(wanted).ends_with(wanted));
    }
    const std::string last = client.receive_all();
    CHECK(body_of(last) == "GET /end ");
    CHECK(last.find("Connection: close\r\n") != std::string::npos);
}

TEST_CASE("a request in single bytes is one request") {
    RunningFront running{Echo()};
    Client client(running.port());
    const std::string request =
        "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    for (const char byte : request) client.send({&byte, 1});
    CHECK(body_of(client.receive_all()) == "POST /x abc");
}

TEST_CASE("the head and the body arrive as they were sent") {
    std::vector<std::pair<std::string, std::string>> fields;
    SocketName name;
    RunningFront running{[&](Event& event) {
        if (event.kind != Event::Kind::request) return;
        for (const Field& field : event.exchange->head().fields)
            fields.emplace_back(field.name, field.value);
        name = event.exchange->client();
        answer(*event.exchange, "ok");
    }};
    Client client(running.port());
    client.send(
        "GET / HTTP/1.1\r\nHOST:  Example \r\nX-A: 1\r\nX-A:\t2\r\nConnection: close\r\n\r\n");
    client.receive_all();
    using Pair = std::pair<std::string, std::string>;
    CHECK(fields == std::vector<Pair>{
                        {"host", "Example"}, {"x-a", "1"}, {"x-a", "2"}, {"connection", "close"}});
    CHECK(name.host == "127.0.0.1");
    CHECK(name.port != 0);
}

TEST_CASE("a body that nobody takes stops its sender") {
    std::shared_ptr<Exchange> kept;
    std::atomic<bool> has_request = false;
    RunningFront running{[&](Event& event) {
        if (event.kind == Event::Kind::request) {
            kept = event.exchange;
            has_request = true;
        }
    }};
    constexpr std::size_t size = std::size_t{64} << 20;
    Client client(running.port());
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(size) +
                "\r\n\r\n");
    const std::string piece(std::size_t{1} << 20, 'x');
    std::atomic<std::size_t> sent = 0;
    std::thread sender([&] {
        for (std::size_t i = 0; i < size / piece.size() && client.send(piece); ++i)
            sent += piece.size();
    });
    REQUIRE(comes_true([&] { return has_request.load(); }));
    std::size_t before = 0;
    do {  // Until the buffers of both sockets are full.
        before = sent;
        std::this_thread::sleep_for(200ms);
    } while (sent != before);
    CHECK(before < size / 2);
    std::size_t taken_bytes = 0;
    CHECK(comes_true([&] {
        const Exchange::Body taken = kept->take_body();
        taken_bytes += taken.bytes.size();
        return taken.is_complete;
    }));
    CHECK(taken_bytes == size);
    sender.join();
    answer(*kept, "ok");
    CHECK(client.receive_until("\r\n\r\nok").ends_with("ok"));
}

TEST_CASE("100 (Continue) is sent when the application takes the body") {
    std::shared_ptr<Exchange> kept;
    std::atomic<bool> has_request = false;
    RunningFront running{[&](Event& event) {
        if (event.kind == Event::Kind::request) {
            kept = event.exchange;
            has_request = true;
        } else if (event.kind == Event::Kind::body) {
            answer(*event.exchange, event.exchange->take_body().bytes);
        }
    }};
    Client client(running.port());
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    REQUIRE(comes_true([&] { return has_request.load(); }));
    SUBCASE("and the body follows") {
        CHECK(kept->take_body().bytes.empty());
        CHECK(client.receive_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
        client.send("ab");
        CHECK(client.receive_until("\r\n\r\nab").starts_with("HTTP/1.1 200"));
    }
    SUBCASE("but not after a response") {
        answer(*kept, "no", 401);
        kept->take_body();
        const std::string all = client.receive_all();
        CHECK(all.starts_with("HTTP/1.1 401"));
        CHECK(all.find("Connection: close") != std::string::npos);
    }
}

TEST_CASE("a response before the end of the body is read by its sender") {
    RunningFront running{[](Event& event) {
        if (event.kind == Event::Kind::request)
            answer(*event.exchange, std::string(100'000, 'r'), 413);
    }};
    Client client(running.port());
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n");
    for (int i = 0; i < 30; ++i) client.send(std::string(100'000, 'x'));
    CHECK(body_of(client.receive_all()).size() == 100'000);
}

TEST_CASE("bodies without a length") {
    RunningFront running{[](Event& event) {
        if (event.kind != Event::Kind::request) return;
        Exchange& exchange = *event.exchange;
        CHECK(exchange.start(exchange.head().target == "/204" ? 204 : 200, {}) == "");
        exchange.write("ab", false);
        exchange.write("", false);
        exchange.write("c", true);
        exchange.write("ignored", true);
    }};
    Client client(running.port());
    SUBCASE("are chunked") {
        client.send(get);
        CHECK(client.receive_until("0\r\n\r\n")
                  .ends_with("Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"));
        client.send(get);
        CHECK(client.receive_until("0\r\n\r\n").starts_with("HTTP/1.1 200"));
    }
    SUBCASE("end with the connection in HTTP/1.0") {
        client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        const std::string all = client.receive_all();
        CHECK(body_of(all) == "abc");
        CHECK(all.find("chunked") == std::string::npos);
    }
    SUBCASE("are not sent for HEAD") {
        client.send("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        CHECK(body_of(client.receive_all()).empty());
    }
    SUBCASE("are not sent with 204") {
        client.send("GET /204 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        const std::string all = client.receive_all();
        CHECK(body_of(all).empty());
        CHECK(all.find("Transfer-Encoding") == std::string::npos);
    }
}

TEST_CASE("an invalid response head is not sent") {
    RunningFront running{[&](Event& event) {
        if (event.kind != Event::Kind::request) return;
        Exchange& exchange = *event.exchange;
        const std::array bad = {
            std::array{Field{"a", "b\r\nset-cookie: c"}}, std::array{Field{"a b", "c"}},
            std::array{Field{"content-length", "1x"}}, std::array{Field{"content-length", ""}}};
        for (const auto& fields : bad) CHECK(exchange.start(200, fields) != "");
        CHECK(exchange.start(99, {}) != "");
        CHECK(exchange.start(1000, {}) != "");
        CHECK(!exchange.is_started());
        answer(exchange, "failed", 500);
        CHECK(exchange.start(200, {}) != "");
    }};
    Client client(running.port());
    client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    const std::string response = client.receive_all();
    CHECK(response.starts_with("HTTP/1.1 500 Internal Server Error\r\n"));
    CHECK(body_of(response) == "failed");
    CHECK(response.find("cookie") == std::string::npos);
}

TEST_CASE("a body that is not as long as its header says ends the connection") {
    std::atomic<int> refused = 0;
    RunningFront running{[&](Event& event) {
        if (event.kind != Event::Kind::request) return;
        const std::vector<Field> fields{{.name = "Content-Length", .value = "3"}};
        CHECK(event.exchange->start(200, fields) == "");
        const std::string_view body = event.exchange->head().target == "/long" ? "abcd" : "ab";
        if (!event.exchange->write(body, true)) ++refused;
    }};
    for (const char* target : {"/long", "/short"}) {
        Client client(running.port());
        client.send("GET " + std::string(target) + " HTTP/1.1\r\nHost: x\r\n\r\n");
        CHECK(body_of(client.receive_all()).size() <= 3);
    }
    CHECK(refused == 2);
}

TEST_CASE("what is not HTTP is refused, after the requests before it") {
    RunningFront running{Echo()};
    Client client(running.port());
    client.send(std::string(get) + std::string("\0rubbish\r\n\r\n", 12));
    const std::string all = client.receive_all();
    CHECK(count(all, "HTTP/1.1 200") == 1);
    CHECK(all.find("HTTP/1.1 400") > all.find("HTTP/1.1 200"));
    CHECK(all.ends_with("}"));
}

TEST_CASE("deadlines") {
    FrontOptions options;
    options.header_timeout = 100ms;
    options.keep_alive_timeout = 100ms;
    RunningFront running{Echo(), options};
    Client silent(running.port());
    CHECK(silent.receive_all().empty());
    Client slow(running.port());
    slow.send("GET / HTTP/1.1\r\nHo");
    CHECK(slow.receive_all().starts_with("HTTP/1.1 408"));
    Client idle(running.port());
    idle.send(get);
    CHECK(body_of(idle.receive_all()) == "GET /a?b ");
    CHECK(comes_true([&] { return running.front().connections() == 0; }));
}

TEST_CASE("a client that does not read is dropped, one that reads slowly is not") {
    FrontOptions options;
    options.write_timeout = 300ms;
    std::atomic<int> disconnected = 0;
    RunningFront running{[&](Event& event) {
                             if (event.kind == Event::Kind::disconnected) ++disconnected;
                             if (event.kind != Event::Kind::request) return;
                             CHECK(event.exchange->start(200, {}) == "");
                             event.exchange->write(std::string(std::size_t{32} << 20, 'x'), true);
                         },
                         options};
    SUBCASE("not at all") {
        Client client(running.port());
        client.send(get);
        CHECK(comes_true([&] { return running.front().connections() == 0; }));
    }
    SUBCASE("slowly") {
        Client client(running.port());
        client.send("GET / HTTP/1.0\r\n\r\n");
        std::size_t received = 0;
        std::string piece(std::size_t{256} << 10, '\0');
        for (int i = 0; i < 10; ++i) {
            std::this_thread::sleep_for(100ms);
            received += static_cast<std::size_t>(
                std::max<ssize_t>(0, ::recv(client.descriptor(), piece.data(), piece.size(), 0)));
        }
        received += client.receive_all().size();
        CHECK(received > (std::size_t{32} << 20));
    }
}

TEST_CASE("room for more output comes when the client reads") {
    std::atomic<int> writable = 0;
    std::atomic<bool> had_room = true;
    RunningFront running{[&](Event& event) {
        Exchange& exchange = *event.exchange;
        if (event.kind == Event::Kind::request) {
            CHECK(exchange.start(200, {}) == "");
            exchange.write(std::string(std::size_t{32} << 20, 'x'), false);
            had_room = exchange.has_room();
        } else if (event.kind == Event::Kind::writable) {
            ++writable;
            exchange.write("end", true);
        }
    }};
    Client client(running.port());
    client.send(get);
    REQUIRE(comes_true([&] { return !had_room; }));
    CHECK(writable == 0);
    CHECK(client.receive_until("3\r\nend\r\n0\r\n\r\n").size() > (std::size_t{32} << 20));
    CHECK(writable == 1);
}

TEST_CASE("the application is told of a client that has gone") {
    std::atomic<int> requests = 0;
    std::atomic<int> disconnected = 0;
    std::shared_ptr<Exchange> kept;
    RunningFront running{[&](Event& event) {
        kept = event.exchange;
        if (event.kind == Event::Kind::request) ++requests;
        if (event.kind == Event::Kind::disconnected) ++disconnected;
    }};
    Client client(running.port());
    SUBCASE("by a reset") {
        client.send(get);
        REQUIRE(comes_true([&] { return requests == 1; }));
        client.reset();
    }
    SUBCASE("by closing, which a server sees when it writes") {
        client.send(get);
        REQUIRE(comes_true([&] { return requests == 1; }));
        client.close();
    }
    SUBCASE("in the middle of a body") {
        client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nab");
        REQUIRE(comes_true([&] { return requests == 1; }));
        kept->take_body();  // Nothing more is read before.
        client.shut_down();
    }
    CHECK(comes_true([&] { return disconnected == 1; }));
    CHECK(kept->take_body().is_disconnected);
    answer(*kept, "too late");
    CHECK(comes_true([&] { return running.front().connections() == 0; }));
}

TEST_CASE("a client that only closes its sending side gets its response") {
    std::shared_ptr<Exchange> kept;
    std::atomic<int> requests = 0;
    RunningFront running{[&](Event& event) {
        if (event.kind != Event::Kind::request) return;
        kept = event.exchange;
        ++requests;
    }};
    Client client(running.port());
    client.send(get);
    client.shut_down();
    REQUIRE(comes_true([&] { return requests == 1; }));
    std::this_thread::sleep_for(500ms);
    answer(*kept, "patient");
    CHECK(client.receive_all().ends_with("\r\n\r\npatient"));
}

TEST_CASE("connections beyond the limits are answered with 503") {
    FrontOptions options;
    options.max_connections = 3;
    RunningFront running{Echo(), options};
    {
        std::vector<std::unique_ptr<Client>> clients;
        for (int i = 0; i < 3; ++i) clients.push_back(std::make_unique<Client>(running.port()));
        REQUIRE(comes_true([&] { return running.front().connections() == 3; }));
        Client refused(running.port());
        CHECK(refused.receive_all().starts_with("HTTP/1.1 503"));
    }
    REQUIRE(comes_true([&] { return running.front().connections() == 0; }));
    Client again(running.port());
    again.send(get);
    CHECK(again.receive_until("GET /a?b ").starts_with("HTTP/1.1 200"));
}

TEST_CASE("draining closes idle connections at once, and others after their response") {
    std::shared_ptr<Exchange> kept;
    std::atomic<int> requests = 0;
    RunningFront running{[&](Event& event) {
        if (event.kind != Event::Kind::request) return;
        kept = event.exchange;
        ++requests;
    }};
    Client idle(running.port());
    Client busy(running.port());
    busy.send(get);
    REQUIRE(comes_true([&] { return requests == 1 && running.front().connections() == 2; }));
    running.front().drain();
    CHECK(idle.receive_all().empty());
    answer(*kept, "last");
    CHECK(busy.receive_all().ends_with("\r\n\r\nlast"));
}

TEST_CASE("exchanges may outlive their front") {
    std::shared_ptr<Exchange> kept;
    std::atomic<int> requests = 0;
    {
        RunningFront running{[&](Event& event) {
            if (event.kind != Event::Kind::request) return;
            kept = event.exchange;
            ++requests;
        }};
        Client client(running.port());
        client.send(get);
        REQUIRE(comes_true([&] { return requests == 1; }));
    }
    CHECK(kept->take_body().is_disconnected);
    answer(*kept, "too late");
    CHECK(kept->has_room());
}

TEST_CASE("many clients, of which some go away, on several threads") {
    FrontOptions options;
    options.io_threads = 3;
    std::atomic<std::size_t> answered = 0;
    RunningFront running{Echo(), options};
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < 8; ++thread) {
        threads.emplace_back([&, thread] {
            std::mt19937 random(thread);
            for (int i = 0; i < 60; ++i) {
                Client client(running.port());
                const std::size_t size = random() % 100'000;
                const std::string request =
                    "POST /y HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(size) +
                    "\r\nConnection: close\r\n\r\n" + std::string(size, 'x');
                if (random() % 3 == 0) {
                    client.send(std::string_view(request).substr(0, random() % request.size()));
                    if (random() % 2 == 0) client.reset();
                    continue;
                }
                client.send(request);
                if (random() % 5 == 0) continue;
                if (body_of(client.receive_all()).size() == size + 8)
                    ++answered;
                else
                    --answered;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(answered > 100);
    CHECK(comes_true([&] { return running.front().connections() == 0; }));
}

TEST_CASE("deadlines that are postponed come once") {
    struct Owner {
        Deadline deadline;
    };
    Deadlines<Owner> deadlines;
    Owner first;
    Owner second;
    const TimePoint start = Clock::now();
    deadlines.set(first, start + 10ms);
    deadlines.set(second, start + 20ms);
    deadlines.set(first, start + 30ms);
    CHECK(deadlines.next_due(start + 9ms) == nullptr);
    CHECK(deadlines.next_due(start + 15ms) == nullptr);
    CHECK(deadlines.next_due(start + 25ms) == &second);
    deadlines.set(first, start + 26ms);
    CHECK(deadlines.first() == start + 26ms);
    CHECK(deadlines.next_due(start + 26ms) == &first);
    CHECK(deadlines.next_due(start + 1h) == nullptr);
    deadlines.set(first, never);
    CHECK(deadlines.first() == never);
}

namespace {

Network network(const char* address) {
    sockaddr_storage generic{};
    sockaddr_in ipv4{};
    sockaddr_in6 ipv6{};
    if (::inet_pton(AF_INET, address, &ipv4.sin_addr) == 1) {
        ipv4.sin_family = AF_INET;
        std::memcpy(&generic, &ipv4, sizeof ipv4);
    } else if (::inet_pton(AF_INET6, address, &ipv6.sin6_addr) == 1) {
        ipv6.sin6_family = AF_INET6;
        std::memcpy(&generic, &ipv6, sizeof ipv6);
    } else {
        generic.ss_family = AF_UNIX;
    }
    return network_of(generic);
}

}  // namespace

TEST_CASE("which clients count as one") {
    ConnectionLimit limit(8, std::nullopt);
    for (int i = 0; i < 4; ++i) CHECK(limit.acquire(network("192.0.2.1")));
    CHECK(!limit.acquire(network("192.0.2.1")));
    CHECK(limit.acquire(network("192.0.2.2")));
    CHECK(!limit.acquire(network("::ffff:192.0.2.1")));
    for (int i = 0; i < 6; ++i) limit.release(network("192.0.2.1"));
    CHECK(limit.acquire(network("192.0.2.1")));

    ConnectionLimit ipv6(8, std::nullopt);
    for (const char* one : {"2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"}) {
        CHECK(ipv6.acquire(network(one)));
    }
    CHECK(!ipv6.acquire(network("2001:db8::5")));
    CHECK(ipv6.acquire(network("2001:db8:0:1::1")));

    // This machine may run a proxy, so only the total limits it.
    for (const char* here : {"127.0.0.1", "::1", "::ffff:127.0.0.1", "a Unix socket"}) {
        ConnectionLimit total(8, std::nullopt);
        for (int i = 0; i < 8; ++i) CHECK(total.acquire(network(here)));
        CHECK(!total.acquire(network("192.0.2.1")));
    }
}
