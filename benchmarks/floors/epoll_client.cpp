// The floor under any client: sockets and epoll, no library, no look at what comes beyond its end.
//
//   epoll_client requests PORT COUNT CONNECTIONS      small POSTs, each connection one after the
//   other epoll_client streams PORT STREAMS TOKENS RATE     streams of events, their "data:"
//   counted
//
// Prints user and system CPU seconds as JSON.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "usage.hpp"

namespace {

constexpr std::string_view kBody =
    R"({"model":"llama-3.3-70b-versatile","messages":[{"role":"user","content":)"
    R"("Why is the sky blue? Answer in two sentences."}],"temperature":0.7})";

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "epoll_client: %s\n", what);
    std::exit(1);
}

std::string request(const std::string& target) {
    std::string text = "POST " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
    text += "Authorization: Bearer floor-token\r\nContent-Type: application/json\r\n";
    text += "Content-Length: " + std::to_string(kBody.size()) + "\r\n\r\n";
    return text.append(kBody);
}

// A connection and how much of its answer is known.
struct Peer {
    int socket = -1;
    std::uint64_t left = 0;   // bytes of the answer that have not come yet
    std::string head;         // of an answer, until its length is known
    std::size_t matched = 0;  // bytes of the mark that the last read ended with
};

class Client {
public:
    Client(std::uint16_t port, std::size_t connections, std::string text)
        : epoll_(epoll_create1(EPOLL_CLOEXEC)), text_(std::move(text)), peers_(connections) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        for (std::size_t index = 0; index < peers_.size(); ++index) {
            Peer& peer = peers_[index];
            peer.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (connect(peer.socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
                fail("cannot connect");
            }
            const int on = 1;
            setsockopt(peer.socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
            epoll_event event{};
            event.events = EPOLLIN;
            event.data.u64 = index;
            epoll_ctl(epoll_, EPOLL_CTL_ADD, peer.socket, &event);
        }
    }
    ~Client() {
        for (const Peer& peer : peers_) close(peer.socket);
        close(epoll_);
    }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    void requests(std::uint64_t count);
    std::uint64_t streams();

private:
    template <typename OnData>
    void loop(const OnData& on_data);
    void ask(const Peer& peer) const;

    int epoll_;
    std::string text_;
    std::vector<Peer> peers_;
    std::array<char, 64 * 1024> buffer_{};
};

void Client::ask(const Peer& peer) const {
    if (send(peer.socket, text_.data(), text_.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(text_.size())) {
        fail("cannot send");
    }
}

// Calls on_data(peer, data) for all that comes until it gives false.
template <typename OnData>
void Client::loop(const OnData& on_data) {
    std::array<epoll_event, 1024> events{};
    while (true) {
        const int count = epoll_wait(epoll_, events.data(), events.size(), 30'000);
        if (count <= 0) fail("nothing came for 30 seconds");
        for (int index = 0; index < count; ++index) {
            Peer& peer = peers_[events[static_cast<std::size_t>(index)].data.u64];
            const ssize_t got = recv(peer.socket, buffer_.data(), buffer_.size(), 0);
            if (got <= 0) fail("the server has closed");
            if (!on_data(peer, std::string_view(buffer_.data(), static_cast<std::size_t>(got)))) {
                return;
            }
        }
    }
}

void Client::requests(std::uint64_t count) {
    std::uint64_t asked = 0;
    std::uint64_t done = 0;
    for (Peer& peer : peers_) {
        if (asked++ < count) ask(peer);
    }
    loop([&](Peer& peer, std::string_view data) {
        if (peer.left == 0) {
            peer.head.append(data);
            const std::size_t end = peer.head.find("\r\n\r\n");
            if (end == std::string::npos) return true;
            const std::size_t length = peer.head.find("Content-Length: ");
            if (length == std::string::npos) fail("an answer without a length");
            peer.left = end + 4 + std::strtoull(peer.head.c_str() + length + 16, nullptr, 10);
            peer.left -= peer.head.size();
            peer.head.clear();
        } else {
            peer.left -= data.size();
        }
        if (peer.left != 0) return true;
        if (asked < count) {
            ++asked;
            ask(peer);
        }
        return ++done < count;
    });
}

// How many times the mark is in `data`, which goes on where the last read ended.
std::uint64_t count_marks(Peer& peer, std::string_view data) {
    constexpr std::string_view kMark = "data: ";
    std::uint64_t found = 0;
    std::size_t at = 0;
    while (at < data.size()) {
        if (peer.matched == 0) {
            at = data.find(kMark.front(), at);
            if (at == std::string_view::npos) break;
        }
        if (data[at] == kMark[peer.matched]) {
            ++at;
            if (++peer.matched == kMark.size()) {
                ++found;
                peer.matched = 0;
                at = data.find('\n', at);
                if (at == std::string_view::npos) break;
            }
        } else {
            peer.matched = 0;
            if (data[at] != kMark.front()) ++at;
        }
    }
    return found;
}

std::uint64_t Client::streams() {
    constexpr std::string_view kEnd = "\r\n0\r\n\r\n";
    std::uint64_t events = 0;
    std::size_t open = peers_.size();
    for (const Peer& peer : peers_) ask(peer);
    loop([&](Peer& peer, std::string_view data) {
        events += count_marks(peer, data);
        // The end of a body in chunks comes in one piece here, or the read after it brings the
        // rest.
        peer.head.append(data.substr(data.size() - std::min(data.size(), kEnd.size())));
        if (peer.head.size() > kEnd.size()) peer.head.erase(0, peer.head.size() - kEnd.size());
        if (peer.head == kEnd) --open;
        return open > 0;
    });
    return events;
}

std::uint64_t number(const char* text) {
    return std::strtoull(text, nullptr, 10);
}

}  // namespace

int main(int argument_count, char** arguments) {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    const std::string_view mode = argument_count > 1 ? arguments[1] : "";
    if (mode == "requests" && argument_count == 5) {
        const std::uint64_t count = number(arguments[3]);
        Client client(static_cast<std::uint16_t>(number(arguments[2])), number(arguments[4]),
                      request("/"));
        const floors::Meter meter;
        client.requests(count);
        meter.report("requests", count);
        return 0;
    }
    if (mode == "streams" && argument_count == 6) {
        const std::string target =
            std::string("/stream?tokens=") + arguments[4] + "&rate=" + arguments[5];
        const floors::Meter meter;
        Client client(static_cast<std::uint16_t>(number(arguments[2])), number(arguments[3]),
                      request(target));
        const std::uint64_t events = client.streams();
        meter.report("events", events);
        return 0;
    }
    fail("requests PORT COUNT CONNECTIONS | streams PORT STREAMS TOKENS RATE");
}
