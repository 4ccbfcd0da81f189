// Tests the engine with a minimal server, for what the Python tests cannot check, above all
// threads.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "file_descriptor.hpp"
#include "polymux/transport/loop_notifier.hpp"
#include "polymux/transport/session.hpp"
#include "transport/engine.hpp"

using namespace polymux;
using namespace polymux::transport;
using namespace std::chrono_literals;

namespace {

/// Responds to every request with the same bytes, on one thread for each connection.
class Server {
public:
    explicit Server(std::string answer) : answer_(std::move(answer)) {
        listener_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
        REQUIRE(::listen(listener_.get(), 128) == 0);
        REQUIRE(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
        url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/";
        acceptor_ = std::thread([this] { accept(); });
    }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server() {
        stopping_ = true;
        ::shutdown(listener_.get(), SHUT_RDWR);
        acceptor_.join();
        for (std::thread& one : connections_) one.join();
    }

    const std::string& url() const { return url_; }
    int accepted() const { return accepted_; }

private:
    void accept() {
        while (!stopping_) {
            const int connection = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
            if (connection < 0) return;
            ++accepted_;
            connections_.emplace_back([this, connection] { serve(FileDescriptor(connection)); });
        }
    }

    void serve(const FileDescriptor& connection) const {
        std::string received;
        char buffer[4096];
        for (;;) {
            const auto count = ::recv(connection.get(), buffer, sizeof buffer, 0);
            if (count <= 0) return;
            received.append(buffer, static_cast<std::size_t>(count));
            // Requests of these tests have a body of two bytes.
            for (std::size_t end = 0; (end = received.find("\r\n\r\n")) != std::string::npos;) {
                if (received.size() < end + 6) break;
                received.erase(0, end + 6);
                ::send(connection.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
            }
        }
    }

    std::string answer_;
    FileDescriptor listener_;
    std::string url_;
    std::atomic<bool> stopping_ = false;
    std::atomic<int> accepted_ = 0;
    std::thread acceptor_;
    std::vector<std::thread> connections_;
};

const std::string plain = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Way: back\r\n\r\nfine";
const std::string event = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
const std::string streamed =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: " +
    std::to_string(event.size()) + "\r\n\r\n" + event;

Task task(const std::string& url, ResponseMode response_mode = ResponseMode::buffered) {
    return {.request = {.url = url, .body = std::string("{}")}, .response_mode = response_mode};
}

/// Drives an exchange to its end. Returns how its stream ended, if it is one.
stream::StreamState run(Lease& lease, const std::shared_ptr<Exchange>& exchange) {
    lease.start(exchange);
    stream::ChatBatch batch;
    stream::StreamState state = stream::StreamState::open;
    for (bool over = false; !over;) {
        over = exchange->ended();
        if (!over) lease.run(*exchange, 1000ms);
        batch.clear();
        exchange->take(batch);
        if (batch.end()) state = batch.end()->state;
    }
    return state;
}

/// Takes a notifier's news until `count` exchanges have ended.
void drain(LoopNotifier& notifier, int count) {
    int ended = 0;
    std::vector<std::shared_ptr<Exchange>> ready;
    stream::ChatBatch batch;
    while (ended < count) {
        notifier.take(ready);
        for (const auto& exchange : ready) {
            const bool over = exchange->ended();
            exchange->take(batch);
            batch.clear();
            if (over) ++ended;
        }
        ready.clear();
        std::this_thread::sleep_for(1ms);
    }
}

}  // namespace

TEST_SUITE("transport") {
    TEST_CASE("a caller drives its request, and the next one uses the same connection") {
        const Server server(plain);
        Session session({.headers = {"X-Who: test"}});
        for (int i = 0; i < 5; ++i) {
            auto lease = session.lease();
            REQUIRE(lease);
            const auto exchange = std::make_shared<Exchange>(task(server.url()));
            run(*lease, exchange);
            REQUIRE_FALSE(exchange->outcome().failure);
            CHECK(exchange->outcome().body == "fine");
            CHECK(exchange->outcome().head->field("x-way") == "back");
        }
        CHECK(server.accepted() == 1);
    }

    TEST_CASE("threads share a session, each with a separate engine") {
        const Server server(plain);
        Session session({});
        std::atomic<int> good = 0;
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; ++i) {
            threads.emplace_back([&] {
                for (int j = 0; j < 50; ++j) {
                    auto lease = session.lease();
                    const auto exchange = std::make_shared<Exchange>(task(server.url()));
                    run(*lease, exchange);
                    if (exchange->outcome().body == "fine") ++good;
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        CHECK(good == 400);
        CHECK(server.accepted() <= 8);
    }

    TEST_CASE(
        "the session's thread runs many exchanges at once, and a notifier reports their ends") {
        const Server server(plain);
        Session session({});
        auto notifier = LoopNotifier::create();
        REQUIRE(notifier);
        std::vector<std::shared_ptr<Exchange>> exchanges;
        for (int i = 0; i < 300; ++i) {
            exchanges.push_back(std::make_shared<Exchange>(task(server.url()), *notifier));
            REQUIRE(session.start(exchanges.back()));
        }
        drain(**notifier, 300);
        for (const auto& exchange : exchanges) CHECK(exchange->outcome().body == "fine");
    }

    TEST_CASE("a round wakes a loop once, however many exchanges have news") {
        const Server server("");  // It never responds.
        auto engine = Engine::create(std::make_shared<SessionCommon>(SessionOptions{}), 8);
        auto notifier = LoopNotifier::create();
        REQUIRE(engine);
        REQUIRE(notifier);
        Mailbox& mailbox = *(*engine)->mailbox();
        std::vector<std::shared_ptr<Exchange>> exchanges;
        for (int i = 0; i < 100; ++i) {
            exchanges.push_back(std::make_shared<Exchange>(task(server.url()), *notifier));
            mailbox.post(Mailbox::Command::start, exchanges.back());
        }
        (*engine)->run_once(0ms);
        for (const auto& exchange : exchanges) exchange->cancel();
        (*engine)->run_once(0ms);
        for (const auto& exchange : exchanges) CHECK(exchange->ended());
        std::uint64_t writes = 0;
        REQUIRE(::read((*notifier)->descriptor(), &writes, sizeof writes) == sizeof writes);
        CHECK(writes == 1);
        (*notifier)->close();  // Breaks a cycle with its untaken news.
    }

    TEST_CASE("streams are canceled from other threads at any moment") {
        const Server server("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        Session session({});
        auto notifier = LoopNotifier::create();
        REQUIRE(notifier);
        std::vector<std::shared_ptr<Exchange>> exchanges;
        for (int i = 0; i < 100; ++i) {
            exchanges.push_back(
                std::make_shared<Exchange>(task(server.url(), ResponseMode::chat), *notifier));
            REQUIRE(session.start(exchanges.back()));
        }
        std::thread canceller([&exchanges] {
            for (const auto& exchange : exchanges) {
                exchange->cancel();
                std::this_thread::yield();
            }
        });
        drain(**notifier, 100);
        canceller.join();
        for (const auto& exchange : exchanges) {
            REQUIRE(exchange->outcome().failure);
            CHECK(exchange->outcome().failure->code == ErrorCode::cancelled);
        }
    }

    TEST_CASE("closing a session ends what its thread and its leases do") {
        const Server server("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");  // And then nothing.
        Session session({});
        auto notifier = LoopNotifier::create();
        const auto carried = std::make_shared<Exchange>(task(server.url()), *notifier);
        REQUIRE(session.start(carried));
        std::thread driver([&] {
            auto lease = session.lease();
            const auto driven = std::make_shared<Exchange>(task(server.url()));
            run(*lease, driven);
            CHECK(driven->outcome().failure->code == ErrorCode::cancelled);
        });
        while (server.accepted() < 2) std::this_thread::sleep_for(1ms);
        session.close();
        driver.join();
        drain(**notifier, 1);
        CHECK(carried->outcome().failure->code == ErrorCode::cancelled);
        CHECK_FALSE(session.lease());
        CHECK_FALSE(session.start(std::make_shared<Exchange>(task(server.url()), *notifier)));
    }

    TEST_CASE("a stream that is cut off, and timeouts") {
        const Server server(streamed);
        Session session({});
        auto lease = session.lease();
        const auto exchange = std::make_shared<Exchange>(task(server.url(), ResponseMode::chat));
        CHECK(run(*lease, exchange) == stream::StreamState::interrupted);
        CHECK_FALSE(exchange->outcome().failure);

        const Server silent("");
        Task late = task(silent.url());
        late.deadlines.total = 50ms;
        const auto waiting = std::make_shared<Exchange>(std::move(late));
        run(*lease, waiting);
        REQUIRE(waiting->outcome().failure);
        CHECK(waiting->outcome().failure->code == ErrorCode::timed_out);
        CHECK(waiting->outcome().failure->stage == "total");
    }
}
