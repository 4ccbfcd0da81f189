// A server in OpenAI's form that costs as little as one can: one thread, epoll, no parser of JSON.
//
//   upstream FILE
//
// It prints its port on 127.0.0.1 and serves until standard input ends. Whatever is asked is
// answered by the JSON in FILE; a request with an order (content.hpp) by that stream, each token at
// the time that the order says, whatever became of those before it.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../server/figures.hpp"
#include "../servers/floor_http.hpp"
#include "content.hpp"

namespace {

using figures::now_ns;
using gateway::Order;

constexpr std::size_t kReadBytes = 256 * 1024;
constexpr std::size_t kMostWaitingBytes = 4 << 20;

struct Connection {
    int socket = -1;
    std::uint64_t id = 0;  // sockets' numbers come again
    std::string input;
    std::string output;
    std::size_t sent = 0;
    bool wants_write = false;
    std::optional<Order> order;
    std::uint64_t place = 0;
};

struct Due {
    std::uint64_t at_ns = 0;
    int socket = -1;
    std::uint64_t id = 0;

    bool operator>(const Due& other) const { return at_ns > other.at_ns; }
};

class Upstream {
public:
    explicit Upstream(std::string body);
    int port() const { return port_; }
    void serve();

private:
    void listen_to(int file) const;
    void accept_all();
    void on_event(Connection& connection, std::uint32_t events);
    bool read_from(Connection& connection);
    void answer(Connection& connection, std::string_view body);
    void add_events(Connection& connection, std::uint64_t time_ns);
    void schedule(const Connection& connection);
    void run_due();
    bool flush(Connection& connection) const;
    void drop(const Connection& connection);

    int epoll_ = epoll_create1(EPOLL_CLOEXEC);
    int timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    int listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int port_ = 0;
    std::string answer_;
    std::vector<char> scratch_ = std::vector<char>(kReadBytes);
    std::unordered_map<int, std::unique_ptr<Connection>> connections_;
    std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
    std::uint64_t next_id_ = 0;
};

Upstream::Upstream(std::string body)
    : answer_("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + std::move(body)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_, plain, size) != 0 || listen(listener_, 4096) != 0 ||
        getsockname(listener_, plain, &size) != 0) {
        figures::fail("upstream: cannot listen");
    }
    port_ = ntohs(address.sin_port);
    for (const int file : {listener_, timer_, STDIN_FILENO}) listen_to(file);
}

void Upstream::listen_to(int file) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = file;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, file, &event) != 0) figures::fail("upstream: epoll_ctl");
}

void Upstream::serve() {
    std::array<epoll_event, 1024> events{};
    while (true) {
        const int count = epoll_wait(epoll_, events.data(), events.size(), -1);
        for (int index = 0; index < count; ++index) {
            const epoll_event& event = events[static_cast<std::size_t>(index)];
            if (event.data.fd == STDIN_FILENO) return;
            if (event.data.fd == listener_) {
                accept_all();
            } else if (event.data.fd == timer_) {
                std::uint64_t expirations = 0;
                [[maybe_unused]] const ssize_t got =
                    read(timer_, &expirations, sizeof(expirations));
            } else if (const auto found = connections_.find(event.data.fd);
                       found != connections_.end()) {
                on_event(*found->second, event.events);
            }
        }
        run_due();
    }
}

void Upstream::accept_all() {
    while (true) {
        const int socket = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (socket < 0) return;
        const int on = 1;
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        listen_to(socket);
        auto connection = std::make_unique<Connection>();
        connection->socket = socket;
        connection->id = ++next_id_;
        connections_[socket] = std::move(connection);
    }
}

void Upstream::on_event(Connection& connection, std::uint32_t events) {
    if ((events & EPOLLOUT) != 0 && !flush(connection)) return drop(connection);
    if ((events & ~std::uint32_t{EPOLLOUT}) != 0 && !read_from(connection)) drop(connection);
}

// False when the connection has ended.
bool Upstream::read_from(Connection& connection) {
    const ssize_t got = recv(connection.socket, scratch_.data(), scratch_.size(), 0);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    connection.input.append(scratch_.data(), static_cast<std::size_t>(got));
    while (true) {
        const std::size_t end = connection.input.find("\r\n\r\n");
        if (end == std::string::npos) break;
        std::string head = connection.input.substr(0, end + 2);
        std::transform(head.begin(), head.end(), head.begin(), [](char letter) {
            return static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
        });
        const std::uint64_t length = floor_http::parameter(head, "\r\ncontent-length:", 0);
        if (connection.input.size() < end + 4 + length) break;
        answer(connection, std::string_view(connection.input).substr(end + 4, length));
        connection.input.erase(0, end + 4 + length);
    }
    return flush(connection);
}

void Upstream::answer(Connection& connection, std::string_view body) {
    connection.order = gateway::order_of(body);
    connection.place = 0;
    if (!connection.order) {
        connection.output += answer_;
        return;
    }
    connection.output +=
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    schedule(connection);
}

void Upstream::schedule(const Connection& connection) {
    due_.push({connection.order->due_ns(connection.place), connection.socket, connection.id});
}

// All tokens that are due, each a chunk of its own; the end comes with the last.
void Upstream::add_events(Connection& connection, std::uint64_t time_ns) {
    const Order& order = *connection.order;
    while (connection.place < gateway::places_of(order) &&
           (connection.place >= order.tokens || order.due_ns(connection.place) <= time_ns)) {
        const std::string event = gateway::event_of(order, connection.place++);
        std::array<char, 16> size{};
        std::snprintf(size.data(), size.size(), "%zx\r\n", event.size());
        connection.output.append(size.data()).append(event).append("\r\n");
    }
    if (connection.place < order.tokens) {
        schedule(connection);
    } else {
        connection.output += "0\r\n\r\n";
        connection.order.reset();
    }
}

void Upstream::run_due() {
    while (!due_.empty()) {
        const Due first = due_.top();
        const std::uint64_t time_ns = now_ns();
        if (first.at_ns > time_ns) {
            itimerspec time{};
            time.it_value.tv_sec = static_cast<time_t>(first.at_ns / gateway::kSecondNs);
            time.it_value.tv_nsec = static_cast<long>(first.at_ns % gateway::kSecondNs);
            timerfd_settime(timer_, TFD_TIMER_ABSTIME, &time, nullptr);
            return;
        }
        due_.pop();
        const auto found = connections_.find(first.socket);
        if (found == connections_.end() || found->second->id != first.id) continue;
        add_events(*found->second, time_ns);
        if (!flush(*found->second)) drop(*found->second);
    }
}

// False when the connection has ended, or nobody reads what is sent on it.
bool Upstream::flush(Connection& connection) const {
    while (connection.sent < connection.output.size()) {
        const ssize_t done = send(connection.socket, connection.output.data() + connection.sent,
                                  connection.output.size() - connection.sent, MSG_NOSIGNAL);
        if (done < 0 && errno != EAGAIN) return false;
        if (done < 0) break;
        connection.sent += static_cast<std::size_t>(done);
    }
    const bool rest = connection.sent < connection.output.size();
    if (!rest) {
        connection.output.clear();
        connection.sent = 0;
    }
    if (rest != connection.wants_write) {
        connection.wants_write = rest;
        epoll_event event{};
        event.events = rest ? EPOLLIN | EPOLLOUT : EPOLLIN;
        event.data.fd = connection.socket;
        epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.socket, &event);
    }
    return connection.output.size() < kMostWaitingBytes;
}

void Upstream::drop(const Connection& connection) {
    const int socket = connection.socket;
    close(socket);
    connections_.erase(socket);
}

}  // namespace

int main(int argument_count, char** arguments) {
    if (argument_count != 2) {
        std::fprintf(stderr, "upstream FILE\n");
        return 2;
    }
    std::ifstream file(arguments[1], std::ios::binary);
    std::string body((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (body.empty()) figures::fail(arguments[1]);
    prctl(PR_SET_TIMERSLACK, 1);
    figures::raise_descriptors();
    Upstream upstream(std::move(body));
    std::printf("%d\n", upstream.port());
    std::fflush(stdout);
    upstream.serve();
    return 0;
}
