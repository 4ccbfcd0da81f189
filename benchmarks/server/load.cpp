// Requests to one server of this machine, by one thread; prints what came of them as JSON.
//
//   load closed PORT COUNT CONNECTIONS FILE...       every connection sends one behind the other
//   load paced PORT COUNT CONNECTIONS RATE FILE...   RATE a second, at times that are fixed
//   beforehand
//
// A file is a request as it is sent, header and body; of several each has its turn. When paced,
// latency counts from the time at which a request was due, whenever there was a connection for it:
// a server that stalls cannot hide that by keeping others from being sent. A connection that the
// server closes is opened anew.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "answer.hpp"
#include "figures.hpp"

namespace {

using figures::cpu_s;
using figures::mapped;
using figures::now_ns;
using figures::print_percentiles;

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr int kSilenceMs = 120'000;
constexpr std::uint64_t kTimer = ~std::uint64_t{0};

[[noreturn]] void fail(const std::string& what) {
    figures::fail("load: " + what);
}

struct Plan {
    std::uint16_t port = 0;
    std::uint64_t count = 0;
    std::size_t connections = 0;
    double rate = 0;  // 0: as fast as answers come
    std::vector<std::string_view> requests;
};

struct Peer {
    int socket = -1;
    std::string_view request;
    std::string_view rest;  // of it, as long as it is being sent
    std::uint64_t due_ns = 0;
    bool wants_write = false;
    bool used = false;  // An answer has come on this connection.
    std::optional<load::Answer> answer;
};

class Load {
public:
    explicit Load(Plan plan);
    void run();
    void print() const;

private:
    void open_socket(std::size_t index);
    void watch(std::size_t index, bool write);
    void start_due();
    void start(std::size_t index, std::uint64_t due_ns);
    void send_rest(std::size_t index);
    void read_some(std::size_t index);
    void finish(std::size_t index, std::uint64_t at_ns, bool whole);
    void set_timer() const;

    Plan plan_;
    int epoll_;
    int timer_;
    std::vector<Peer> peers_;
    std::deque<std::size_t> idle_;
    std::vector<std::uint64_t> due_ns_;
    std::uint64_t next_ = 0;
    std::uint64_t done_ = 0;
    std::uint64_t cut_ = 0;
    std::uint64_t opened_ = 0;
    load::Events events_;
    std::map<int, std::uint64_t> statuses_;
    std::vector<double> latencies_s_;
    std::vector<double> late_s_;
    std::vector<char> buffer_ = std::vector<char>(256 * 1024);
    double cpu_s_ = 0;
    double wall_s_ = 0;
};

Load::Load(Plan plan)
    : plan_(std::move(plan)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      peers_(plan_.connections) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kTimer;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, timer_, &event) != 0) fail("timer");
    for (std::size_t index = 0; index < peers_.size(); ++index) {
        open_socket(index);
        idle_.push_back(index);
    }
    latencies_s_.reserve(plan_.count);
}

void Load::open_socket(std::size_t index) {
    Peer& peer = peers_[index];
    if (peer.socket >= 0) close(peer.socket);
    peer.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(plan_.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(peer.socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
        fail("connect");
    }
    const int on = 1;
    setsockopt(peer.socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    fcntl(peer.socket, F_SETFL, O_NONBLOCK);
    peer.wants_write = peer.used = false;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = index;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, peer.socket, &event) != 0) fail("epoll_ctl");
    ++opened_;
}

void Load::watch(std::size_t index, bool write) {
    Peer& peer = peers_[index];
    if (peer.wants_write == write) return;
    peer.wants_write = write;
    epoll_event event{};
    event.events = write ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.u64 = index;
    epoll_ctl(epoll_, EPOLL_CTL_MOD, peer.socket, &event);
}

void Load::start(std::size_t index, std::uint64_t due_ns) {
    Peer& peer = peers_[index];
    peer.request = plan_.requests[next_++ % plan_.requests.size()];
    peer.rest = peer.request;
    peer.due_ns = due_ns;
    peer.answer.emplace(events_);
    send_rest(index);
}

void Load::send_rest(std::size_t index) {
    Peer& peer = peers_[index];
    while (!peer.rest.empty()) {
        const ssize_t sent = send(peer.socket, peer.rest.data(), peer.rest.size(), MSG_NOSIGNAL);
        if (sent < 0) {
            // Refused and closed: the answer it received is still to be read.
            if (errno != EAGAIN) peer.rest = {};
            break;
        }
        peer.rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    watch(index, !peer.rest.empty());
}

void Load::start_due() {
    while (!idle_.empty() && next_ < plan_.count) {
        std::uint64_t due = now_ns();
        if (!due_ns_.empty()) {
            if (due_ns_[next_] > due) break;
            late_s_.push_back(static_cast<double>(due - due_ns_[next_]) * 1e-9);
            due = due_ns_[next_];
        }
        const std::size_t index = idle_.front();
        idle_.pop_front();
        start(index, due);
    }
    if (!due_ns_.empty()) set_timer();
}

void Load::set_timer() const {
    itimerspec time{};
    if (!idle_.empty() && next_ < plan_.count) {
        time.it_value.tv_sec = static_cast<time_t>(due_ns_[next_] / kSecondNs);
        time.it_value.tv_nsec = static_cast<long>(due_ns_[next_] % kSecondNs);
    }
    timerfd_settime(timer_, TFD_TIMER_ABSTIME, &time, nullptr);
}

void Load::read_some(std::size_t index) {
    Peer& peer = peers_[index];
    const ssize_t got = recv(peer.socket, buffer_.data(), buffer_.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    const std::uint64_t at_ns = now_ns();
    if (!peer.answer) {  // Closed while nothing was asked.
        open_socket(index);
        return;
    }
    if (got <= 0 && peer.used && !peer.answer->begun()) {
        // Closed when the request was on its way: clients send it again.
        open_socket(index);
        peer.rest = peer.request;
        send_rest(index);
        return;
    }
    if (got <= 0) {
        finish(index, at_ns, peer.answer->end());
        return;
    }
    peer.answer->take({buffer_.data(), static_cast<std::size_t>(got)}, at_ns);
    if (peer.answer->done()) finish(index, at_ns, true);
}

void Load::finish(std::size_t index, std::uint64_t at_ns, bool whole) {
    Peer& peer = peers_[index];
    ++done_;
    if (whole) {
        ++statuses_[peer.answer->status()];
        latencies_s_.push_back(static_cast<double>(at_ns - peer.due_ns) * 1e-9);
    } else {
        ++cut_;
    }
    const bool again = !whole || peer.answer->closes() || !peer.rest.empty();
    peer.answer.reset();
    peer.rest = {};
    peer.used = true;
    if (again && next_ < plan_.count) open_socket(index);
    idle_.push_back(index);
}

void Load::run() {
    const double cpu_before_s = cpu_s();
    const std::uint64_t began_ns = now_ns();
    if (plan_.rate > 0) {
        // As independent callers come: exponential gaps, the same in every run.
        std::mt19937_64 random(1);  // NOLINT(cert-msc51-cpp)
        double at_s = 0.01;
        for (std::uint64_t number = 0; number < plan_.count; ++number) {
            const double uniform = (static_cast<double>(random() >> 11) + 1) / 9007199254740993.0;
            at_s += -std::log(uniform) / plan_.rate;
            due_ns_.push_back(began_ns + static_cast<std::uint64_t>(at_s * 1e9));
        }
    }
    std::array<epoll_event, 1024> events{};
    start_due();
    while (done_ < plan_.count) {
        const int count = epoll_wait(epoll_, events.data(), events.size(), kSilenceMs);
        if (count == 0) fail("nothing came for two minutes");
        for (int at = 0; at < count; ++at) {
            const epoll_event& event = events[static_cast<std::size_t>(at)];
            if (event.data.u64 == kTimer) {
                std::uint64_t expirations = 0;
                [[maybe_unused]] const ssize_t got =
                    read(timer_, &expirations, sizeof(expirations));
                continue;
            }
            if ((event.events & EPOLLOUT) != 0) send_rest(event.data.u64);
            if ((event.events & ~std::uint32_t{EPOLLOUT}) != 0) read_some(event.data.u64);
        }
        start_due();
    }
    wall_s_ = static_cast<double>(now_ns() - began_ns) * 1e-9;
    cpu_s_ = cpu_s() - cpu_before_s;
}

void Load::print() const {
    const auto plain = [](std::uint64_t count) { return static_cast<unsigned long long>(count); };
    std::printf(
        R"({"count": %llu, "cut": %llu, "connections": %llu, "events_seen": %llu, "tokens": %llu)",
        plain(done_), plain(cut_), plain(opened_), plain(events_.count), plain(events_.tokens));
    std::printf(R"(, "load_cpu_s": %.6f, "wall_s": %.6f)", cpu_s_, wall_s_);
    print_percentiles("latency", latencies_s_);
    print_percentiles("late", late_s_);
    print_percentiles("lag", events_.lags_s);
    std::printf(R"(, "statuses": {)");
    const char* comma = "";
    for (const auto& [status, count] : statuses_) {
        std::printf(R"(%s"%d": %llu)", comma, status, plain(count));
        comma = ", ";
    }
    std::printf("}}\n");
}

}  // namespace

int main(int argument_count, char** arguments) {
    const std::string_view mode = argument_count > 1 ? arguments[1] : "";
    const bool paced = mode == "paced";
    const int files = paced ? 6 : 5;
    if ((!paced && mode != "closed") || argument_count <= files) {
        std::fprintf(stderr,
                     "load closed PORT COUNT CONNECTIONS FILE... | paced PORT COUNT CONNECTIONS "
                     "RATE FILE...\n");
        return 2;
    }
    prctl(PR_SET_TIMERSLACK, 1);
    figures::raise_descriptors();
    Plan plan;
    plan.port = static_cast<std::uint16_t>(std::strtoul(arguments[2], nullptr, 10));
    plan.count = std::strtoull(arguments[3], nullptr, 10);
    plan.connections = std::strtoull(arguments[4], nullptr, 10);
    plan.rate = paced ? std::strtod(arguments[5], nullptr) : 0;
    for (int at = files; at < argument_count; ++at) plan.requests.push_back(mapped(arguments[at]));
    Load made(std::move(plan));
    made.run();
    made.print();
}
