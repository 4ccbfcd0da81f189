// A very cheap HTTP/1.1 server for benchmarks of clients: one thread, epoll, no allocation per
// answer.
//
// It prints its port on 127.0.0.1, serves until standard input ends, and then prints what it did as
// JSON. By the path of a request:
//   /sink                            takes a body of any size and answers its length, as a job
//                                    that succeeded
//   /stream?tokens=N&rate=R&stamp=1  N events of a streamed chat, R a second, each stream at a
//   phase of
//                                    its own; as fast as the client reads with rate=0. With stamp=1
//                                    the text of each is the time it was sent (CLOCK_MONOTONIC,
//                                    ns).
//   anything else                    683 bytes of JSON

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "floor_http.hpp"

namespace {

using floor_http::Chunks;
using floor_http::Counters;
using floor_http::event_chunk;
using floor_http::parameter;
using floor_http::small_answer;

constexpr std::size_t kReadBytes = 256 * 1024;
constexpr std::size_t kFastBlockBytes = 64 * 1024;
constexpr std::uint64_t kSlotNs = 1'000'000;
constexpr std::size_t kSlots = 4096;

std::uint64_t now_ns() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
}

struct Connection {
    int socket = -1;
    std::string input;
    std::string output;
    std::size_t sent = 0;
    // The request that is being read.
    bool in_body = false;
    bool chunked = false;
    std::uint64_t left = 0;
    std::uint64_t body_bytes = 0;
    Chunks chunks;
    std::string target;
    // The stream that is being sent.
    std::uint64_t tokens_left = 0;
    std::uint64_t period_ns = 0;
    std::uint64_t due_ns = 0;
    std::uint64_t slot = 0;
    std::uint64_t number = 0;
    bool streaming = false;
    bool stamped = false;
    bool wants_write = false;
};

class Server {
public:
    Server();
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    int port() const { return port_; }
    const Counters& counters() const { return counters_; }
    void serve();

private:
    void accept_all();
    void on_event(Connection& connection, std::uint32_t events);
    bool read_from(Connection& connection);
    bool take_input(Connection& connection);
    void begin_request(Connection& connection, std::string_view head);
    void end_request(Connection& connection);
    bool flush(Connection& connection);
    void watch(Connection& connection, bool write);
    void drop(Connection& connection);
    void add_event(Connection& connection, std::uint64_t time_ns);
    void fill(Connection& connection);
    void schedule(Connection& connection);
    void run_wheel(std::uint64_t time_ns);
    void run_entry(int socket, std::uint64_t time_ns);

    int epoll_ = -1;
    int listener_ = -1;
    int port_ = 0;
    std::string answer_ = small_answer();
    std::vector<char> scratch_ = std::vector<char>(kReadBytes);
    std::unordered_map<int, std::unique_ptr<Connection>> connections_;
    // Sockets by the millisecond in which their next event is due, modulo the slots; an entry whose
    // connection is due at another time is an old one.
    std::array<std::vector<int>, kSlots> wheel_;
    std::uint64_t wheel_at_ = 0;
    std::size_t timed_streams_ = 0;
    std::uint64_t stream_number_ = 0;
    Counters counters_;
};

Server::Server() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_, plain, size) != 0 || listen(listener_, 4096) != 0 ||
        getsockname(listener_, plain, &size) != 0) {
        std::perror("floor_server");
        std::exit(1);
    }
    port_ = ntohs(address.sin_port);
    for (const int file : {listener_, STDIN_FILENO}) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = file;
        if (epoll_ctl(epoll_, EPOLL_CTL_ADD, file, &event) != 0) {
            std::fputs("floor_server: standard input must be a pipe\n", stderr);
            std::exit(1);
        }
    }
}

Server::~Server() {
    for (const auto& [socket, connection] : connections_) close(socket);
    close(listener_);
    close(epoll_);
}

void Server::serve() {
    std::array<epoll_event, 1024> events{};
    wheel_at_ = now_ns() / kSlotNs;
    while (true) {
        const int wait_ms = timed_streams_ > 0 ? 1 : -1;
        const int count = epoll_wait(epoll_, events.data(), events.size(), wait_ms);
        for (int index = 0; index < count; ++index) {
            const epoll_event& event = events[static_cast<std::size_t>(index)];
            if (event.data.fd == STDIN_FILENO) return;
            if (event.data.fd == listener_) {
                accept_all();
            } else if (const auto found = connections_.find(event.data.fd);
                       found != connections_.end()) {
                on_event(*found->second, event.events);
            }
        }
        run_wheel(now_ns());
    }
}

void Server::accept_all() {
    while (true) {
        const int socket = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (socket < 0) return;
        const int on = 1;
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = socket;
        epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event);
        auto connection = std::make_unique<Connection>();
        connection->socket = socket;
        connections_[socket] = std::move(connection);
        ++counters_.connections;
    }
}

void Server::on_event(Connection& connection, std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) {
        if (connection.streaming && connection.period_ns == 0) fill(connection);
        if (!flush(connection)) return drop(connection);
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !read_from(connection)) {
        drop(connection);
    }
}

// False when the connection has ended.
bool Server::read_from(Connection& connection) {
    // Content that nobody looks at is dropped in the kernel: MSG_TRUNC copies nothing.
    const bool plain_body = connection.in_body && !connection.chunked;
    const std::size_t most =
        plain_body ? std::min<std::uint64_t>(connection.left, 1U << 30) : scratch_.size();
    const ssize_t got = recv(connection.socket, plain_body ? nullptr : scratch_.data(), most,
                             plain_body ? MSG_TRUNC : 0);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (plain_body) {
        connection.left -= static_cast<std::uint64_t>(got);
        connection.body_bytes += static_cast<std::uint64_t>(got);
        if (connection.left == 0) end_request(connection);
    } else {
        connection.input.append(scratch_.data(), static_cast<std::size_t>(got));
    }
    return take_input(connection) && flush(connection);
}

bool Server::take_input(Connection& connection) {
    while (!connection.input.empty()) {
        if (!connection.in_body) {
            const std::size_t end = connection.input.find("\r\n\r\n");
            if (end == std::string::npos) return connection.input.size() < kReadBytes;
            const std::string head = connection.input.substr(0, end + 2);
            connection.input.erase(0, end + 4);
            begin_request(connection, head);
        }
        std::size_t used = 0;
        if (connection.chunked) {
            connection.body_bytes += connection.chunks.take(connection.input, used);
        } else {
            used = std::min<std::uint64_t>(connection.left, connection.input.size());
            connection.left -= used;
            connection.body_bytes += used;
        }
        connection.input.erase(0, used);
        const bool ended =
            connection.chunked ? connection.chunks.at == Chunks::At::kEnd : connection.left == 0;
        if (!ended) return true;
        end_request(connection);
    }
    return true;
}

void Server::begin_request(Connection& connection, std::string_view head) {
    std::string lower(head);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char letter) {
        return static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    });
    const std::size_t start = head.find(' ') + 1;
    connection.target = head.substr(start, head.find(' ', start) - start);
    connection.left = parameter(lower, "\r\ncontent-length:", 0);
    connection.chunked = lower.find("\r\ntransfer-encoding: chunked") != std::string::npos;
    connection.chunks = Chunks{};
    connection.body_bytes = 0;
    connection.in_body = true;
    if (lower.find("\r\nexpect: 100-continue") != std::string::npos) {
        connection.output += "HTTP/1.1 100 Continue\r\n\r\n";
    }
}

void Server::end_request(Connection& connection) {
    connection.in_body = connection.chunked = false;
    ++counters_.requests;
    counters_.body_bytes += connection.body_bytes;
    if (connection.target.rfind("/sink", 0) == 0) {
        const std::string body = R"({"status":"succeeded","received_bytes":)" +
                                 std::to_string(connection.body_bytes) + "}";
        connection.output +=
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
            std::to_string(body.size()) + "\r\n\r\n" + body;
        return;
    }
    if (connection.target.rfind("/stream", 0) != 0) {
        connection.output += answer_;
        return;
    }
    connection.output +=
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    connection.tokens_left = parameter(connection.target, "tokens=", 100);
    connection.stamped = parameter(connection.target, "stamp=", 0) != 0;
    const std::uint64_t rate = parameter(connection.target, "rate=", 0);
    connection.period_ns = rate == 0 ? 0 : 1'000'000'000 / rate;
    connection.streaming = true;
    connection.number = 0;
    if (connection.period_ns == 0) return fill(connection);
    // Phases spread evenly, whatever their number: the fractional parts of multiples of 0.618.
    const std::uint64_t phase =
        (++stream_number_ * 618'034 % 1'000'000) * connection.period_ns / 1'000'000;
    connection.due_ns = now_ns() + phase;
    ++timed_streams_;
    schedule(connection);
}

void Server::add_event(Connection& connection, std::uint64_t time_ns) {
    connection.output += event_chunk(connection.number++, connection.stamped ? time_ns : 0);
    ++counters_.events;
    if (--connection.tokens_left == 0) {
        connection.output += "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";
        connection.streaming = false;
    }
}

void Server::fill(Connection& connection) {
    while (connection.streaming && connection.output.size() - connection.sent < kFastBlockBytes) {
        add_event(connection, connection.stamped ? now_ns() : 0);
    }
}

void Server::schedule(Connection& connection) {
    connection.slot = std::max(connection.due_ns / kSlotNs, wheel_at_ + 1);
    wheel_[connection.slot % kSlots].push_back(connection.socket);
}

void Server::run_wheel(std::uint64_t time_ns) {
    const std::uint64_t end = time_ns / kSlotNs;
    if (timed_streams_ == 0) wheel_at_ = end;
    while (wheel_at_ < end) {
        ++wheel_at_;
        std::vector<int> due;
        due.swap(wheel_[wheel_at_ % kSlots]);
        for (const int socket : due) run_entry(socket, time_ns);
    }
}

void Server::run_entry(int socket, std::uint64_t time_ns) {
    const auto found = connections_.find(socket);
    if (found == connections_.end()) return;
    Connection& connection = *found->second;
    if (!connection.streaming || connection.period_ns == 0) return;
    if (connection.slot > wheel_at_ && connection.slot % kSlots == wheel_at_ % kSlots) {
        wheel_[connection.slot % kSlots].push_back(socket);  // a later round
        return;
    }
    if (connection.slot != wheel_at_) return;
    while (connection.streaming && connection.due_ns / kSlotNs <= wheel_at_) {
        add_event(connection, time_ns);
        connection.due_ns += connection.period_ns;
    }
    if (connection.streaming) {
        schedule(connection);
    } else {
        --timed_streams_;
    }
    if (!flush(connection)) drop(connection);
}

// False when the connection has ended.
bool Server::flush(Connection& connection) {
    while (connection.sent < connection.output.size()) {
        const ssize_t done = send(connection.socket, connection.output.data() + connection.sent,
                                  connection.output.size() - connection.sent, MSG_NOSIGNAL);
        if (done < 0 && errno == EAGAIN) {
            watch(connection, true);
            return true;
        }
        if (done < 0) return false;
        connection.sent += static_cast<std::size_t>(done);
    }
    connection.output.clear();
    connection.sent = 0;
    watch(connection, connection.streaming && connection.period_ns == 0);
    return true;
}

void Server::watch(Connection& connection, bool write) {
    if (connection.wants_write == write) return;
    connection.wants_write = write;
    epoll_event event{};
    event.events = write ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.fd = connection.socket;
    epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.socket, &event);
}

void Server::drop(Connection& connection) {
    if (connection.streaming && connection.period_ns != 0) --timed_streams_;
    const int socket = connection.socket;
    close(socket);
    connections_.erase(socket);
}

}  // namespace

int main() {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    Server server;
    std::printf("%d\n", server.port());
    std::fflush(stdout);
    server.serve();
    server.counters().print();
    return 0;
}
