// A server on loopback whose responses are texts, and a fetch from it.
#pragma once

#include <doctest/doctest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "polymux/transport/fetch.hpp"

namespace polymux::testing {

using namespace polymux::transport;  // NOLINT(google-build-using-namespace)

/// Responds to each connection to a loopback address with the next of its texts.
class Server {
public:
    explicit Server(std::vector<std::string> answers)
        : answers_(std::move(answers)), socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* const generic = reinterpret_cast<sockaddr*>(&address);
        REQUIRE(bind(socket_, generic, size) == 0);
        REQUIRE(listen(socket_, 16) == 0);
        REQUIRE(getsockname(socket_, generic, &size) == 0);
        port_ = ntohs(address.sin_port);
        thread_ = std::thread([this] { serve(); });
    }
    ~Server() {
        shutdown(socket_, SHUT_RDWR);
        thread_.join();
        close(socket_);
    }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    [[nodiscard]] int connections() const noexcept { return connections_; }
    /// The received request heads, in order.
    [[nodiscard]] std::vector<std::string> requests() const {
        const std::lock_guard guard(mutex_);
        return requests_;
    }

private:
    void serve() {
        for (;;) {
            const int peer = accept(socket_, nullptr, nullptr);
            if (peer < 0) return;
            const auto number = static_cast<std::size_t>(connections_++);
            char request[4096];
            const auto got = recv(peer, request, sizeof request, 0);
            {
                const std::lock_guard guard(mutex_);
                requests_.emplace_back(request, got > 0 ? static_cast<std::size_t>(got) : 0);
            }
            const std::string& answer = answers_[std::min(number, answers_.size() - 1)];
            [[maybe_unused]] const auto sent =
                send(peer, answer.data(), answer.size(), MSG_NOSIGNAL);
            close(peer);
        }
    }

    std::vector<std::string> answers_;
    int socket_;
    std::uint16_t port_ = 0;
    std::atomic<int> connections_{0};
    mutable std::mutex mutex_;
    std::vector<std::string> requests_;
    std::thread thread_;
};

struct Outcome {
    Result<Fetched> fetched;
    std::string body;
    double seconds = 0;
};

inline Outcome run(const std::string& url, const FetchOptions& options,
                   const CancelToken& cancel = {}) {
    std::string body;
    const auto began = std::chrono::steady_clock::now();
    const auto sink = [&](std::span<const std::byte> piece) -> Result<void> {
        body.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        return {};
    };
    const auto turn = [](const FetchProgress&) -> Result<void> { return {}; };
    auto fetched = fetch(url, options, sink, turn, cancel);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    return {.fetched = std::move(fetched), .body = std::move(body), .seconds = took.count()};
}

inline std::vector<Address> addresses(std::initializer_list<std::string_view> texts) {
    std::vector<Address> parsed;
    for (const std::string_view text : texts) parsed.push_back(parse_address(text).value());
    return parsed;
}

/// Loopback counts as public here, and `port` is allowed.
inline FetchOptions options_for(std::uint16_t port, Resolver resolver) {
    FetchOptions options;
    options.policy.allowed_networks = {parse_network("127.0.0.0/8").value()};
    options.policy.allowed_ports = {port};
    options.resolver = std::move(resolver);
    return options;
}

inline std::string url_of(std::uint16_t port) {
    return "http://media.example:" + std::to_string(port) + "/";
}

inline const std::string plain = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

}  // namespace polymux::testing
