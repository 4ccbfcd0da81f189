// Sessions with threads that cancel, close, drop and start at any moment (N02): above all for
// ThreadSanitizer.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "file_descriptor.hpp"
#include "polymux/transport/loop_notifier.hpp"
#include "polymux/transport/session.hpp"

using namespace polymux;
using namespace polymux::transport;
using namespace std::chrono_literals;

namespace {

constexpr int rounds = 40;
constexpr int exchanges_of_a_round = 12;

/// Responds to each request by its path: completely, as a stream that ends, as one without end, or
/// never. One thread serves all connections.
class Server {
public:
    Server() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
        REQUIRE(::listen(listener_.get(), 512) == 0);
        REQUIRE(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
        url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
        thread_ = std::thread([this] { serve(); });
    }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server() {
        stopping_ = true;
        thread_.join();
    }

    [[nodiscard]] std::string url(std::string_view path) const { return url_ + std::string(path); }

private:
    struct Connection {
        FileDescriptor socket;
        std::string received = {};
        bool endless = false;
    };

    void serve() {
        std::vector<Connection> connections;
        while (!stopping_) {
            std::vector<pollfd> waited{{listener_.get(), POLLIN, 0}};
            for (const Connection& one : connections)
                waited.push_back({one.socket.get(), POLLIN, 0});
            ::poll(waited.data(), waited.size(), 1);
            const std::size_t known = connections.size();
            if ((waited[0].revents & POLLIN) != 0) {
                connections.push_back(
                    {FileDescriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC))});
            }
            for (std::size_t i = known; i-- > 0;) {
                const bool readable = (waited[i + 1].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
                if (!go_on(connections[i], readable)) {
                    connections.erase(connections.begin() + static_cast<std::ptrdiff_t>(i));
                }
            }
        }
    }

    /// Returns false if the connection has ended.
    static bool go_on(Connection& connection, bool readable) {
        char buffer[4096];
        if (readable) {
            const auto count = ::recv(connection.socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
            if (count == 0 || (count < 0 && errno != EAGAIN)) return false;
            if (count > 0) connection.received.append(buffer, static_cast<std::size_t>(count));
        }
        for (std::size_t end = 0;
             (end = connection.received.find("\r\n\r\n")) != std::string::npos &&
             connection.received.size() >= end + 6;) {  // Bodies of these tests have two bytes.
            const std::string head = connection.received.substr(0, end);
            connection.received.erase(0, end + 6);
            answer(connection, head);
        }
        return !connection.endless || say(connection, event_chunk);
    }

    static void answer(Connection& connection, std::string_view head) {
        if (head.starts_with("POST /whole")) {
            say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine");
        } else if (head.starts_with("POST /stream") || head.starts_with("POST /endless")) {
            say(connection,
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                "Transfer-Encoding: chunked\r\n\r\n");
            say(connection, event_chunk);
            connection.endless = head.starts_with("POST /endless");
            if (!connection.endless) say(connection, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
        }
    }

    /// Does not wait for a client that has stopped reading.
    static bool say(Connection& connection, std::string_view words) {
        const auto sent = ::send(connection.socket.get(), words.data(), words.size(),
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
        return sent == static_cast<ssize_t>(words.size()) || errno == EAGAIN;
    }

    static constexpr std::string_view event_chunk =
        "2f\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n\r\n";

    FileDescriptor listener_;
    std::string url_;
    std::atomic<bool> stopping_ = false;
    std::thread thread_;
};

Task task_of(const Server& server, unsigned number) {
    constexpr std::string_view paths[] = {"/whole", "/stream", "/endless", "/never"};
    Task task{.request = {.url = server.url(paths[number % 4]), .body = std::string("{}")},
              .response_mode = number % 4 == 0   ? ResponseMode::buffered
                               : number % 3 == 0 ? ResponseMode::raw
                                                 : ResponseMode::chat};
    task.deadlines.total = 20s;
    return task;
}

/// Takes news like a consumer.
void take_all(Exchange& exchange) {
    stream::ChatBatch batch;
    std::string bytes;
    if (exchange.task().response_mode == ResponseMode::chat) exchange.take(batch);
    if (exchange.task().response_mode == ResponseMode::raw) exchange.take(bytes);
    static_cast<void>(exchange.head());
    static_cast<void>(exchange.sent_bytes());
}

/// Every exchange has ended, and each one that is no longer held was canceled.
void check_ended(const std::vector<std::shared_ptr<Exchange>>& exchanges) {
    for (const auto& exchange : exchanges) {
        REQUIRE(exchange->ended());
        if (const auto& failure = exchange->outcome().failure)
            CHECK(failure->code == ErrorCode::cancelled);
        else
            CHECK(exchange->outcome().head->status == 200);
    }
}

void wait_for_ends(LoopNotifier& notifier,
                   const std::vector<std::shared_ptr<Exchange>>& exchanges) {
    std::vector<std::shared_ptr<Exchange>> ready;
    const auto all_ended = [&exchanges] {
        for (const auto& exchange : exchanges)
            if (!exchange->ended()) return false;
        return true;
    };
    while (!all_ended()) {
        pollfd waited{notifier.descriptor(), POLLIN, 0};
        ::poll(&waited, 1, 100);
        notifier.take(ready);
        for (const auto& exchange : ready) take_all(*exchange);
        ready.clear();
    }
}

}  // namespace

TEST_SUITE("transport under threads") {
    TEST_CASE("N02 exchanges of a session's thread, cancelled by others at any moment") {
        const Server server;
        auto session = std::make_unique<Session>(SessionOptions{});
        const auto made = LoopNotifier::create();
        REQUIRE(made);
        LoopNotifier& notifier = **made;
        for (unsigned round = 0; round < rounds; ++round) {
            std::vector<std::shared_ptr<Exchange>> exchanges;
            for (unsigned i = 0; i < exchanges_of_a_round; ++i)
                exchanges.push_back(std::make_shared<Exchange>(task_of(server, i + round), *made));
            std::vector<std::thread> threads;
            threads.emplace_back([&] {
                for (const auto& exchange : exchanges) REQUIRE(session->start(exchange));
            });
            for (unsigned number = 0; number < 2; ++number) {
                threads.emplace_back([&exchanges, seed = round * 2 + number] {
                    std::minstd_rand random(seed + 1);
                    for (const auto& exchange : exchanges) {
                        std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
                        exchange->cancel();
                    }
                });
            }
            wait_for_ends(notifier, exchanges);
            for (std::thread& one : threads) one.join();
            check_ended(exchanges);
        }
        session.reset();
        notifier.close();
    }

    TEST_CASE("N02 exchanges that their callers drive, cancelled by others at any moment") {
        const Server server;
        Session session({});
        std::vector<std::thread> callers;
        for (unsigned caller = 0; caller < 4; ++caller) {
            callers.emplace_back([&server, &session, caller] {
                for (unsigned round = 0; round < rounds; ++round) {
                    auto lease = session.lease();
                    const auto exchange =
                        std::make_shared<Exchange>(task_of(server, caller + round));
                    std::thread canceller([exchange, round] {
                        std::this_thread::sleep_for(std::chrono::microseconds(round * 100));
                        exchange->cancel();
                    });
                    lease->start(exchange);
                    while (!exchange->ended()) {
                        lease->run(*exchange, 1000ms);
                        take_all(*exchange);
                    }
                    canceller.join();
                    check_ended({exchange});
                }
            });
        }
        for (std::thread& one : callers) one.join();
    }

    TEST_CASE("N02 sessions that are closed under everything that uses them") {
        const Server server;
        for (unsigned round = 0; round < rounds; ++round) {
            auto session = std::make_unique<Session>(SessionOptions{});
            const auto notifier = LoopNotifier::create();
            REQUIRE(notifier);
            std::vector<std::shared_ptr<Exchange>> started;
            std::thread starter([&] {
                for (unsigned i = 0; i < exchanges_of_a_round; ++i) {
                    auto exchange = std::make_shared<Exchange>(task_of(server, i), *notifier);
                    if (!session->start(exchange)) return;
                    started.push_back(std::move(exchange));
                }
            });
            std::thread driver([&] {
                for (unsigned i = 0; i < exchanges_of_a_round; ++i) {
                    auto lease = session->lease();
                    if (!lease) return;
                    const auto exchange = std::make_shared<Exchange>(task_of(server, i));
                    lease->start(exchange);
                    while (!exchange->ended()) {
                        lease->run(*exchange, 1000ms);
                        take_all(*exchange);
                    }
                    check_ended({exchange});
                }
            });
            std::this_thread::sleep_for(std::chrono::microseconds(round * 150));
            session->close();
            starter.join();
            driver.join();
            session.reset();
            wait_for_ends(**notifier, started);
            check_ended(started);
            (*notifier)->close();
        }
    }

    TEST_CASE("N02 consumers that let go of what goes on still") {
        const Server server;
        auto session = std::make_unique<Session>(SessionOptions{});
        std::vector<std::shared_ptr<LoopNotifier>> notifiers;
        for (unsigned round = 0; round < rounds; ++round) {
            const auto notifier = LoopNotifier::create();
            REQUIRE(notifier);
            notifiers.push_back(*notifier);
            std::vector<std::thread> threads;
            for (unsigned number = 0; number < 3; ++number) {
                threads.emplace_back([&, number] {
                    for (unsigned i = 0; i < exchanges_of_a_round / 3; ++i) {
                        auto exchange = std::make_shared<Exchange>(
                            task_of(server, i + number + round), *notifier);
                        REQUIRE(session->start(exchange));
                        if (i % 2 == 0) std::this_thread::yield();
                        exchange->cancel();
                    }
                });
            }
            for (std::thread& one : threads) one.join();
        }
        session.reset();
        for (const auto& notifier : notifiers) notifier->close();
    }
}
