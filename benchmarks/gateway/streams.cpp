// Many streams through one server of this machine, every byte of them compared; prints what came of
// them as JSON.
//
//   streams PORT COUNT RAMP_MS FILE
//
// FILE is a request as it is sent, with an order in it (content.hpp): every stream gets a number
// and a time of its own there. Streams begin at times that are fixed beforehand, spread over the
// ramp, and so are the times at which their tokens are due: a server that stalls cannot hide that.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../server/answer.hpp"
#include "../server/figures.hpp"
#include "content.hpp"

namespace {

using figures::now_ns;
using gateway::Order;

constexpr int kSilenceMs = 60'000;
constexpr std::uint64_t kTimer = ~std::uint64_t{0};
// From the start of the clock to the first request: nothing is late because the program has begun.
constexpr std::uint64_t kLeadNs = 50'000'000;

// What all streams have seen.
struct Seen {
    std::uint64_t tokens = 0;
    std::uint64_t bytes = 0;
    std::uint64_t whole = 0;
    std::uint64_t wrong = 0;  // another status, another byte, or not all of them
    std::vector<double> gaps_s;
    std::vector<double> jitters_s;
    std::vector<double> lags_s;
    std::vector<double> first_lags_s;
};

// One stream: the bytes that it has are those that its order says.
class Stream {
public:
    Stream(const Order& order, Seen& seen) : order_(order), seen_(&seen) {
        events_.on_body = [this](std::string_view data, std::uint64_t at_ns) {
            compare(data, at_ns);
        };
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // Takes what came; true when the answer has ended.
    bool take(std::string_view data, std::uint64_t at_ns) {
        const std::size_t used = answer_.take(data, at_ns);
        is_wrong_ = is_wrong_ || used != data.size();
        return answer_.done();
    }

    // Counts it, ended by its last chunk or by the connection's end.
    void finish() const {
        const bool complete = place_ == gateway::places_of(order_) && at_ == expected_.size();
        const bool right = answer_.done() && answer_.status() == 200 && complete && !is_wrong_;
        ++(right ? seen_->whole : seen_->wrong);
    }

private:
    void compare(std::string_view data, std::uint64_t at_ns);
    void arrived(std::uint64_t token, std::uint64_t at_ns);

    Order order_;
    Seen* seen_;
    load::Events events_;
    load::Answer answer_{events_};
    std::string expected_;
    std::size_t at_ = 0;
    std::uint64_t place_ = 0;  // of the event behind the expected one
    std::uint64_t last_ns_ = 0;
    bool is_wrong_ = false;
};

void Stream::compare(std::string_view data, std::uint64_t at_ns) {
    seen_->bytes += data.size();
    while (!data.empty() && !is_wrong_) {
        if (at_ == expected_.size()) {
            is_wrong_ = place_ == gateway::places_of(order_);
            if (is_wrong_) return;
            expected_ = gateway::event_of(order_, place_++);
            at_ = 0;
        }
        const std::size_t step = std::min(data.size(), expected_.size() - at_);
        is_wrong_ = data.substr(0, step) != std::string_view(expected_).substr(at_, step);
        at_ += step;
        data.remove_prefix(step);
        if (!is_wrong_ && at_ == expected_.size() && place_ <= order_.tokens) {
            arrived(place_ - 1, at_ns);
        }
    }
}

void Stream::arrived(std::uint64_t token, std::uint64_t at_ns) {
    const auto seconds = [](std::uint64_t from_ns, std::uint64_t to_ns) {
        return static_cast<double>(static_cast<std::int64_t>(to_ns - from_ns)) * 1e-9;
    };
    const double lag_s = seconds(order_.due_ns(token), at_ns);
    ++seen_->tokens;
    seen_->lags_s.push_back(lag_s);
    if (token == 0) {
        seen_->first_lags_s.push_back(lag_s);
    } else {
        const double gap_s = seconds(last_ns_, at_ns);
        seen_->gaps_s.push_back(gap_s);
        seen_->jitters_s.push_back(
            std::abs(gap_s - static_cast<double>(order_.period_ns()) * 1e-9));
    }
    last_ns_ = at_ns;
}

struct Peer {
    int socket = -1;
    std::unique_ptr<Stream> stream;
};

class Load {
public:
    Load(std::uint16_t port, std::size_t count, std::uint64_t ramp_ns, std::string_view request);
    void run();
    void print() const;

private:
    std::uint64_t begin_ns(std::size_t index) const;
    void start_due();
    void start(std::size_t index);
    void read_some(std::size_t index);

    std::uint16_t port_;
    std::uint64_t ramp_ns_;
    std::string request_;
    std::size_t order_at_;
    Order order_;
    int epoll_ = epoll_create1(EPOLL_CLOEXEC);
    int timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    std::vector<Peer> peers_;
    std::size_t next_ = 0;
    std::size_t done_ = 0;
    std::uint64_t began_ns_ = 0;
    Seen seen_;
    std::vector<double> late_s_;
    std::vector<char> buffer_ = std::vector<char>(256 * 1024);
    double cpu_s_ = 0;
    double wall_s_ = 0;
};

Load::Load(std::uint16_t port, std::size_t count, std::uint64_t ramp_ns, std::string_view request)
    : port_(port),
      ramp_ns_(ramp_ns),
      request_(request),
      order_at_(gateway::order_at(request)),
      peers_(count) {
    const auto order = gateway::order_of(request);
    if (!order) {
        errno = EINVAL;
        figures::fail("streams: the request has no order");
    }
    order_ = *order;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kTimer;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, timer_, &event) != 0) figures::fail("streams: timer");
}

std::uint64_t Load::begin_ns(std::size_t index) const {
    return began_ns_ + kLeadNs + ramp_ns_ * index / peers_.size();
}

void Load::start_due() {
    while (next_ < peers_.size() && begin_ns(next_) <= now_ns()) start(next_++);
    if (next_ == peers_.size()) return;
    itimerspec time{};
    time.it_value.tv_sec = static_cast<time_t>(begin_ns(next_) / gateway::kSecondNs);
    time.it_value.tv_nsec = static_cast<long>(begin_ns(next_) % gateway::kSecondNs);
    timerfd_settime(timer_, TFD_TIMER_ABSTIME, &time, nullptr);
}

void Load::start(std::size_t index) {
    Peer& peer = peers_[index];
    Order own = order_;
    own.number = index;
    own.begin_ns = begin_ns(index);
    late_s_.push_back(static_cast<double>(now_ns() - own.begin_ns) * 1e-9);
    peer.stream = std::make_unique<Stream>(own, seen_);
    peer.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(peer.socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
        figures::fail("streams: connect");
    }
    const int on = 1;
    setsockopt(peer.socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    request_.replace(order_at_, gateway::kOrderBytes, gateway::order_text(own));
    // A new socket's buffer holds a request of some hundred bytes.
    const ssize_t sent = send(peer.socket, request_.data(), request_.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(request_.size())) figures::fail("streams: send");
    fcntl(peer.socket, F_SETFL, O_NONBLOCK);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = index;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, peer.socket, &event) != 0) figures::fail("epoll_ctl");
}

void Load::read_some(std::size_t index) {
    Peer& peer = peers_[index];
    if (!peer.stream) return;
    const ssize_t got = recv(peer.socket, buffer_.data(), buffer_.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    const bool ended =
        got <= 0 || peer.stream->take({buffer_.data(), static_cast<std::size_t>(got)}, now_ns());
    if (!ended) return;
    peer.stream->finish();
    peer.stream.reset();
    close(peer.socket);
    ++done_;
}

void Load::run() {
    const double cpu_before_s = figures::cpu_s();
    began_ns_ = now_ns();
    std::array<epoll_event, 1024> events{};
    start_due();
    while (done_ < peers_.size()) {
        const int count = epoll_wait(epoll_, events.data(), events.size(), kSilenceMs);
        if (count == 0) figures::fail("streams: nothing came for a minute");
        for (int at = 0; at < count; ++at) {
            const epoll_event& event = events[static_cast<std::size_t>(at)];
            if (event.data.u64 != kTimer) {
                read_some(event.data.u64);
                continue;
            }
            std::uint64_t expirations = 0;
            [[maybe_unused]] const ssize_t got = read(timer_, &expirations, sizeof(expirations));
        }
        start_due();
    }
    wall_s_ = static_cast<double>(now_ns() - began_ns_) * 1e-9;
    cpu_s_ = figures::cpu_s() - cpu_before_s;
}

void Load::print() const {
    const auto plain = [](std::uint64_t count) { return static_cast<unsigned long long>(count); };
    std::printf(R"({"streams": %llu, "wrong": %llu, "tokens": %llu, "bytes": %llu)",
                plain(seen_.whole), plain(seen_.wrong), plain(seen_.tokens), plain(seen_.bytes));
    std::printf(R"(, "load_cpu_s": %.6f, "wall_s": %.6f)", cpu_s_, wall_s_);
    figures::print_percentiles("gap", seen_.gaps_s);
    figures::print_percentiles("jitter", seen_.jitters_s);
    figures::print_percentiles("lag", seen_.lags_s);
    figures::print_percentiles("first_lag", seen_.first_lags_s);
    figures::print_percentiles("late", late_s_);
    std::printf("}\n");
}

}  // namespace

int main(int argument_count, char** arguments) {
    if (argument_count != 5) {
        std::fprintf(stderr, "streams PORT COUNT RAMP_MS FILE\n");
        return 2;
    }
    prctl(PR_SET_TIMERSLACK, 1);
    figures::raise_descriptors();
    Load made(static_cast<std::uint16_t>(std::strtoul(arguments[1], nullptr, 10)),
              std::strtoull(arguments[2], nullptr, 10),
              std::strtoull(arguments[3], nullptr, 10) * 1'000'000, figures::mapped(arguments[4]));
    made.run();
    made.print();
}
