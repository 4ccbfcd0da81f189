// A front on loopback, its application, and clients that are only sockets.
#pragma once

#include <doctest/doctest.h>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "file_descriptor.hpp"
#include "polymux/server/front.hpp"

namespace polymux::testing {

/// Runs a front and, on a thread, an application that gets every event.
class RunningFront {
public:
    using Application = std::function<void(server::Event&)>;

    explicit RunningFront(Application application, server::FrontOptions options = {})
        : application_(std::move(application)),
          listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* const generic = reinterpret_cast<sockaddr*>(&address);
        REQUIRE(::bind(listener_.get(), generic, size) == 0);
        REQUIRE(::listen(listener_.get(), 128) == 0);
        REQUIRE(::getsockname(listener_.get(), generic, &size) == 0);
        port_ = ntohs(address.sin_port);
        auto front = server::Front::start(listener_.get(), options);
        REQUIRE(front);
        front_ = *std::move(front);
        thread_ = std::thread([this] { run(); });
    }
    RunningFront(const RunningFront&) = delete;
    RunningFront& operator=(const RunningFront&) = delete;
    ~RunningFront() {
        stops_ = true;
        thread_.join();
    }

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    [[nodiscard]] server::Front& front() noexcept { return *front_; }

private:
    void run() {
        std::vector<server::Event> events;
        while (!stops_) {
            pollfd waited{.fd = front_->descriptor(), .events = POLLIN, .revents = 0};
            ::poll(&waited, 1, 20);
            front_->take(events);
            for (server::Event& event : events) application_(event);
            events.clear();
        }
    }

    const Application application_;
    FileDescriptor listener_;
    std::uint16_t port_ = 0;
    std::unique_ptr<server::Front> front_;
    std::atomic<bool> stops_ = false;
    std::thread thread_;
};

class Client {
public:
    explicit Client(std::uint16_t port)
        : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(port);
        REQUIRE(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) ==
                0);
        const timeval limit{.tv_sec = 20, .tv_usec = 0};
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    }

    /// False if the server has closed the connection.
    bool send(std::string_view bytes) const {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }
    /// Returns what has arrived, up to the first occurrence of `end`; or all, to the end of the
    /// connection.
    std::string receive_until(std::string_view end) {
        while (true) {
            const std::size_t at = end.empty() ? std::string::npos : received_.find(end);
            if (at != std::string::npos) {
                std::string found = received_.substr(0, at + end.size());
                received_.erase(0, at + end.size());
                return found;
            }
            std::string piece(65536, '\0');
            const ssize_t count = ::recv(socket_.get(), piece.data(), piece.size(), 0);
            if (count <= 0) return std::exchange(received_, {});
            received_.append(piece, 0, static_cast<std::size_t>(count));
        }
    }
    std::string receive_all() { return receive_until({}); }
    void shut_down() const { ::shutdown(socket_.get(), SHUT_WR); }
    void shut_down_both() const { ::shutdown(socket_.get(), SHUT_RDWR); }
    /// Closes with a reset.
    void reset() {
        const linger at_once{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        socket_.close();
    }
    void close() { socket_.close(); }
    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

private:
    FileDescriptor socket_;
    std::string received_;
};

/// Waits for at most 20 seconds.
template <typename Condition>
[[nodiscard]] bool comes_true(const Condition& condition) {
    for (int i = 0; i < 4000; ++i) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
}

/// Answers with this body and its length.
inline void answer(server::Exchange& exchange, std::string_view body, int status = 200) {
    const std::string length = std::to_string(body.size());
    const std::vector<http1::Field> fields{{.name = "content-length", .value = length}};
    CHECK(exchange.start(status, fields) == "");
    exchange.write(body, true);
}

}  // namespace polymux::testing
