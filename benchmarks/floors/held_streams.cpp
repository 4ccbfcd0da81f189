// The floor under streams that are held open: sockets and epoll against `closing_server`.
//
//   held_streams open PORT STREAMS               memory of a stream that is open and quiet
//   held_streams cancel PORT STREAMS CANCELLED   how soon a closed socket is seen by the server
//
// Prints CPU seconds and what was found as JSON.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "usage.hpp"

namespace {

using Clock = std::chrono::steady_clock;  // Linux: CLOCK_MONOTONIC, which the server tells, too.
constexpr std::chrono::seconds kSettle{1};
constexpr std::chrono::milliseconds kPause{5};

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "held_streams: %s\n", what);
    std::exit(1);
}

int connected(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int found = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(found, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
        fail("cannot connect");
    }
    const int on = 1;
    setsockopt(found, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return found;
}

void ask(int socket, const std::string& target) {
    const std::string text = "POST " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" +
                             "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    if (send(socket, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
        fail("cannot send");
    }
}

std::uint64_t resident_bytes() {
    std::FILE* const file = std::fopen("/proc/self/statm", "r");
    unsigned long long all = 0;
    unsigned long long resident = 0;
    if (file == nullptr || std::fscanf(file, "%llu %llu", &all, &resident) != 2) {
        fail("no /proc/self/statm");
    }
    std::fclose(file);
    return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// Streams that are read and dropped until they are closed.
class Held {
public:
    explicit Held(std::uint16_t port) : port_(port), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}
    ~Held() {
        for (const int socket : sockets_) {
            if (socket >= 0) ::close(socket);
        }
        ::close(epoll_);
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    // Opens so many, and waits until each has given something.
    void open(std::size_t count) {
        const std::size_t before = sockets_.size();
        for (std::size_t number = before; number < before + count; ++number) {
            sockets_.push_back(connected(port_));
            began_.push_back(false);
            epoll_event event{};
            event.events = EPOLLIN;
            event.data.u64 = number;
            epoll_ctl(epoll_, EPOLL_CTL_ADD, sockets_.back(), &event);
            ask(sockets_.back(), "/stream?id=" + std::to_string(number));
        }
        const auto end = Clock::now() + std::chrono::seconds(60);
        while (begun_ < sockets_.size()) {
            if (Clock::now() > end) fail("streams do not begin");
            read_for(kPause);
        }
    }

    void read_for(std::chrono::nanoseconds time) {
        const auto end = Clock::now() + time;
        std::array<epoll_event, 256> events{};
        for (auto now = Clock::now(); now < end; now = Clock::now()) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - now).count();
            const int count =
                epoll_wait(epoll_, events.data(), events.size(), static_cast<int>(left));
            for (int index = 0; index < count; ++index) {
                const std::size_t number = events[static_cast<std::size_t>(index)].data.u64;
                if (recv(sockets_[number], buffer_.data(), buffer_.size(), 0) <= 0) {
                    fail("the server has closed");
                }
                if (!began_[number]) ++begun_;
                began_[number] = true;
            }
        }
    }

    // When it was asked for, in nanoseconds of the clock.
    std::int64_t close(std::size_t number) {
        const auto now = Clock::now().time_since_epoch();
        ::close(sockets_[number]);
        sockets_[number] = -1;
        return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    }

private:
    std::uint16_t port_;
    int epoll_;
    std::vector<int> sockets_;
    std::vector<bool> began_;
    std::size_t begun_ = 0;
    std::array<char, 16 * 1024> buffer_{};
};

std::string closed_times(std::uint16_t port) {
    const int socket = connected(port);
    ask(socket, "/closed");
    std::string text;
    std::array<char, 16 * 1024> buffer{};
    while (true) {
        const ssize_t got = recv(socket, buffer.data(), buffer.size(), 0);
        if (got <= 0) break;
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    close(socket);
    return text;
}

// Between two values where it lies there, as Python's statistics has it ("inclusive").
double percentile(const std::vector<double>& sorted, double share) {
    const double at = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(at));
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (at - std::floor(at)) * (sorted[above] - sorted[below]);
}

void measure_open(std::uint16_t port, std::size_t streams) {
    Held held(port);
    held.open(1);
    const floors::Meter meter;
    const std::uint64_t before = resident_bytes();
    held.open(streams);
    const std::uint64_t grown = resident_bytes() - before;
    meter.report("events", streams, ", \"rss_bytes\": " + std::to_string(grown));
}

void measure_cancel(std::uint16_t port, std::size_t streams, std::size_t cancelled) {
    Held held(port);
    held.open(streams);
    held.read_for(kSettle);
    const floors::Meter meter;
    std::vector<std::pair<std::size_t, std::int64_t>> asked;
    for (std::size_t number = 0; number < streams; number += streams / cancelled) {
        asked.emplace_back(number, held.close(number));
        held.read_for(kPause);
    }
    held.read_for(kSettle);
    const std::string times = closed_times(port);
    std::vector<double> delays_s;
    for (const auto& [number, at] : asked) {
        const std::string name = '"' + std::to_string(number) + "\": ";
        const std::size_t found = times.find(name);
        if (found == std::string::npos) fail("a closed connection is open");
        const std::int64_t seen = std::strtoll(times.c_str() + found + name.size(), nullptr, 10);
        delays_s.push_back(1e-9 * static_cast<double>(seen - at));
    }
    std::ranges::sort(delays_s);
    const std::string more = ", \"closed_p50_s\": " + std::to_string(percentile(delays_s, 0.50)) +
                             ", \"closed_p99_s\": " + std::to_string(percentile(delays_s, 0.99));
    meter.report("events", asked.size(), more);
}

}  // namespace

int main(int argument_count, char** arguments) {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    const std::string_view mode = argument_count > 1 ? arguments[1] : "";
    const auto number = [&](int index) { return std::strtoull(arguments[index], nullptr, 10); };
    if (mode == "open" && argument_count == 4) {
        measure_open(static_cast<std::uint16_t>(number(2)), number(3));
    } else if (mode == "cancel" && argument_count == 5 && number(4) > 0) {
        measure_cancel(static_cast<std::uint16_t>(number(2)), number(3), number(4));
    } else {
        fail("open PORT STREAMS | cancel PORT STREAMS CANCELLED");
    }
}
