#include "server/io_thread.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <system_error>
#include <utility>

#include "signals_blocked.hpp"

namespace polymux::server {

namespace {

constexpr int max_events = 256;
/// Connections accepted in one round.
constexpr int max_accepted = 16;
/// Without free descriptors or memory, until some are free.
constexpr std::chrono::milliseconds accept_pause{100};
/// A flood of invalid requests wakes the application only this often.
constexpr std::chrono::milliseconds refused_delay{100};
constexpr std::size_t max_free_parsers = 64;
constexpr std::size_t buffer_bytes = std::size_t{256} << 10;

Error system_error(const char* what) {
    return {.code = ErrorCode::internal,
            .message = std::string(what) + ": " + std::generic_category().message(errno),
            .os_errno = errno};
}

SocketName name_of(const sockaddr_storage& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (address.ss_family == AF_INET) {
        sockaddr_in ipv4{};
        std::memcpy(&ipv4, &address, sizeof ipv4);
        ::inet_ntop(AF_INET, &ipv4.sin_addr, text.data(), text.size());
        return {.host = text.data(), .port = ntohs(ipv4.sin_port)};
    }
    if (address.ss_family == AF_INET6) {
        sockaddr_in6 ipv6{};
        std::memcpy(&ipv6, &address, sizeof ipv6);
        ::inet_ntop(AF_INET6, &ipv6.sin6_addr, text.data(), text.size());
        return {.host = text.data(), .port = ntohs(ipv6.sin6_port)};
    }
    return {};
}

}  // namespace

Result<std::unique_ptr<IoThread>> IoThread::start(std::shared_ptr<Shared> shared, int listener) {
    FileDescriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll.is_open()) return system_error("cannot create an epoll instance");
    auto wake = make_event();
    if (!wake) return std::move(wake.error());
    auto made =
        std::make_unique<IoThread>(std::move(shared), listener, std::move(epoll), *std::move(wake));
    epoll_event watched{};
    watched.events = EPOLLIN;
    watched.data.ptr = made.get();
    if (::epoll_ctl(made->epoll(), EPOLL_CTL_ADD, made->outbox_->commands.descriptor(), &watched) !=
        0) {
        return system_error("cannot watch an event descriptor");
    }
    made->listen(true);
    IoThread* const thread = made.get();
    const SignalsBlocked blocked;
    try {
        thread->thread_ = std::thread([thread] { thread->run(); });
    } catch (const std::system_error& error) {
        return Error{.code = ErrorCode::internal,
                     .message = std::string("cannot start a thread: ") + error.what()};
    }
    return made;
}

IoThread::IoThread(std::shared_ptr<Shared> shared, int listener, FileDescriptor epoll,
                   FileDescriptor wake)
    : shared_(std::move(shared)),
      outbox_(std::make_shared<Outbox>(std::move(wake), shared_)),
      listener_(listener),
      epoll_(std::move(epoll)),
      buffer_(buffer_bytes) {}

IoThread::~IoThread() {
    if (thread_.joinable()) {
        post({.kind = Command::Kind::stop});
        thread_.join();
    }
    outbox_->commands.close();
}

void IoThread::listen(bool listens) {
    epoll_event watched{};
    watched.events = EPOLLIN | EPOLLEXCLUSIVE;
    ::epoll_ctl(epoll_.get(), listens ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener_, &watched);
    listens_again_at_ = listens || is_draining() ? never : now_ + accept_pause;
}

void IoThread::run() {
    ::pthread_setname_np(::pthread_self(), "polymux front");
    std::array<epoll_event, max_events> ready{};
    while (!is_stopping_) {
        const int count = ::epoll_wait(epoll_.get(), ready.data(), max_events, timeout_ms());
        now_ = Clock::now();
        shared_->rules.update(rules_, rules_version_);
        for (int i = 0; i < count; ++i) {
            const epoll_event& one = ready.at(static_cast<std::size_t>(i));
            if (one.data.ptr == nullptr) {
                accept();
            } else if (one.data.ptr == this) {
                run_commands();
            } else {
                auto& connection = *static_cast<Connection*>(one.data.ptr);
                // A command may have ended it in this round.
                if (!connections_.contains(&connection)) continue;
                guarded(connection, [&] { connection.on_ready(one.events); });
            }
        }
        repeat_all();
        run_deadlines();
        ended_.clear();
        shared_->events.post_all(events_);
    }
    close_all();
    ended_.clear();
    shared_->events.post_all(events_);
}

int IoThread::timeout_ms() const {
    if (!repeated_.empty()) return 0;
    const TimePoint first = std::min({deadlines_.first(), listens_again_at_, refused_at_});
    if (first == never) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - Clock::now()).count();
    return static_cast<int>(std::clamp<decltype(left)>(left, 0, INT_MAX));
}

void IoThread::accept() {
    if (is_draining()) return;
    for (int i = 0; i < max_accepted; ++i) {
        sockaddr_storage client{};
        socklen_t size = sizeof client;
        FileDescriptor socket(::accept4(listener_, reinterpret_cast<sockaddr*>(&client), &size,
                                        SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (socket.is_open()) {
            accept_one(std::move(socket), client);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            listen(false);
            return;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        }
    }
}

void IoThread::accept_one(FileDescriptor socket, const sockaddr_storage& client) {
    sockaddr_storage server{};
    socklen_t size = sizeof server;
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&server), &size);
    if (client.ss_family != AF_UNIX) {
        const int on = 1;
        ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    auto place = std::make_shared<const Place>(shared_->limit, network_of(client));
    auto made = std::make_unique<Connection>(*this, std::move(socket), std::move(place),
                                             name_of(client), name_of(server));
    ++shared_->connections;
    Connection& connection = *made;
    connections_.emplace(&connection, std::move(made));
    guarded(connection, [&] { connection.open(); });
}

void IoThread::note(RefusedRequest request) {
    if (shared_->refused.add(std::move(request))) refused_at_ = now_ + refused_delay;
}

std::unique_ptr<http1::Parser> IoThread::take_parser() {
    if (parsers_.empty()) {
        return std::make_unique<http1::Parser>(http1::MessageKind::request, shared_->parser_limits);
    }
    std::unique_ptr<http1::Parser> parser = std::move(parsers_.back());
    parsers_.pop_back();
    return parser;
}

void IoThread::give_back(std::unique_ptr<http1::Parser> parser) {
    parser->forget_empty_line();
    if (parsers_.size() < max_free_parsers) parsers_.push_back(std::move(parser));
}

void IoThread::run_commands() {
    outbox_->commands.take(commands_);
    for (Command& command : commands_) run(command);
    commands_.clear();
}

void IoThread::run(Command& command) {
    switch (command.kind) {
        case Command::Kind::stop:
            is_stopping_ = true;
            return;
        case Command::Kind::close_all:
            close_all();
            return;
        case Command::Kind::drain: {
            listen(false);
            std::vector<Connection*> all;
            all.reserve(connections_.size());
            for (const auto& [connection, owner] : connections_) all.push_back(connection);
            for (Connection* const connection : all) {
                guarded(*connection, [&] { connection->drain(); });
            }
            return;
        }
        default:
            break;
    }
    Connection* const connection = command.exchange->connection_;
    if (connection == nullptr || connection->is_closed()) return;
    guarded(*connection, [&] {
        switch (command.kind) {
            case Command::Kind::write:
                connection->write(command);
                break;
            case Command::Kind::resume_reading:
                connection->resume_reading();
                break;
            case Command::Kind::send_continue:
                connection->send_continue();
                break;
            default:
                connection->close();
                break;
        }
    });
}

void IoThread::run_deadlines() {
    now_ = Clock::now();
    while (Connection* const due = deadlines_.next_due(now_)) {
        guarded(*due, [&] { due->on_due(now_); });
    }
    if (now_ >= listens_again_at_) listen(true);
    if (now_ >= refused_at_) {
        refused_at_ = never;
        tell({.kind = Event::Kind::refused});
    }
}

void IoThread::repeat_all() {
    std::vector<Connection*> now;
    now.swap(repeated_);
    for (Connection* const connection : now) {
        // It may have ended, or be another one at the same address, which has nothing to parse.
        if (!connections_.contains(connection)) continue;
        guarded(*connection, [&] { connection->parse_ahead(); });
    }
}

template <typename Work>
void IoThread::guarded(Connection& connection, const Work& work) {
    try {
        work();
    } catch (const std::bad_alloc&) {
        connection.close();  // Costs this client its connection, and no other.
    }
    reap_if_closed(connection);
}

void IoThread::reap_if_closed(Connection& connection) {
    if (!connection.is_closed()) return;
    // Kept until the end of the round: a connection at the same address would get its events.
    auto ended = connections_.extract(&connection);
    if (ended.empty()) return;
    deadlines_.remove(connection);
    ended_.push_back(std::move(ended.mapped()));
    --shared_->connections;
}

void IoThread::close_all() {
    std::vector<Connection*> all;
    all.reserve(connections_.size());
    for (const auto& [connection, owner] : connections_) all.push_back(connection);
    for (Connection* const connection : all) {
        connection->close();
        reap_if_closed(*connection);
    }
}

}  // namespace polymux::server
