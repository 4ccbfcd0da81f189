#include "transport/fetch_hop.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "ascii.hpp"
#include "polymux/version.hpp"
#include "transport/content_range.hpp"
#include "transport/descriptors.hpp"
#include "transport/failures.hpp"
#include "transport/fetch_errors.hpp"
#include "transport/fetch_head.hpp"
#include "transport/socket_address.hpp"
#include "transport/trust.hpp"
#include "transport/url_text.hpp"

namespace polymux::transport {
namespace {

/// The maximum number of addresses that libcurl tries in turn; more do not help.
constexpr std::size_t max_addresses = 16;
constexpr long receive_bytes = 64 * 1024;
/// CURLE_TOO_LARGE, which headers before 8.6 lack.
constexpr auto curle_too_large = static_cast<CURLcode>(100);

using HeaderList = std::unique_ptr<curl_slist, FreedBy<&curl_slist_free_all>>;

/// One easy handle with a dedicated multi handle: nothing outlives it, and its connection is never
/// reused.
class Hop {
public:
    Hop(const HopRequest& request, FetchSink sink, FetchMonitor& monitor)
        : request_(request),
          sink_(sink),
          monitor_(monitor),
          head_(request.options.limits, request.resume) {}

    Result<HopResponse> run();

private:
    Result<void> set_up();
    Result<void> pin_addresses();
    Result<void> request_range();
    Result<void> drive();
    Result<void> check_clocks();
    Result<HopResponse> finish(CURLcode outcome);
    Error failure_of(CURLcode outcome) const;
    [[nodiscard]] std::uint64_t received() const;

    /// Ends the transfer with `error`, unless it has ended already.
    void fail(Error error) {
        if (!failure_) failure_ = std::move(error);
    }
    [[nodiscard]] bool may_connect(const Endpoint& peer) const {
        return peer.port == request_.url.port &&
               std::ranges::find(request_.addresses, peer.address) != request_.addresses.end() &&
               check_addresses({&peer.address, 1}, request_.url, request_.options.policy)
                   .has_value();
    }
    bool take_header(std::string_view line);
    bool take_head();
    bool take_body(std::span<const std::byte> piece);
    bool check_peer(const char* address, int port);

    template <typename Body>
    bool guarded(Body body) noexcept {
        try {
            return body();
        } catch (const std::bad_alloc&) {
            failure_ = no_memory();
            return false;
        }
    }

    static std::size_t on_header(char* data, std::size_t, std::size_t size, void* self) noexcept;
    static std::size_t on_body(char* data, std::size_t, std::size_t size, void* self) noexcept;
    static curl_socket_t on_socket(void* self, curlsocktype, curl_sockaddr* address) noexcept;
    static int on_close(void* self, curl_socket_t opened) noexcept;
    static int on_connected(void* self, char* peer, char*, int port, int) noexcept;

    const HopRequest& request_;
    FetchSink sink_;
    FetchMonitor& monitor_;
    HeaderList pinned_;  // Declared before the handles, which refer to it.
    HeaderList headers_;
    EasyHandle easy_;
    MultiHandle multi_;
    FetchHead head_;
    std::optional<Error> failure_;
    bool connected_ = false;
    bool stopped_at_head_ = false;
    std::uint64_t body_bytes_ = 0;
    std::uint64_t seen_bytes_ = 0;  // Body bytes at the last check.
    std::uint64_t window_bytes_ = 0;
    Clock::time_point last_byte_;
    Clock::time_point window_start_;
};

std::size_t Hop::on_header(char* data, std::size_t, std::size_t size, void* self) noexcept {
    Hop& hop = *static_cast<Hop*>(self);
    return hop.guarded([&] { return hop.take_header({data, size}); }) ? size : 0;
}

std::size_t Hop::on_body(char* data, std::size_t, std::size_t size, void* self) noexcept {
    Hop& hop = *static_cast<Hop*>(self);
    const auto piece = std::as_bytes(std::span(data, size));
    return hop.guarded([&] { return hop.take_body(piece); }) ? size : 0;
}

/// The final check of the destination address, independent of libcurl's URL parsing.
curl_socket_t Hop::on_socket(void* self, curlsocktype, curl_sockaddr* address) noexcept {
    Hop& hop = *static_cast<Hop*>(self);
    const auto peer = endpoint(&address->addr, address->addrlen);
    if (!hop.guarded([&] { return peer.has_value() && hop.may_connect(*peer); })) {
        hop.guarded([&] {
            hop.fail(refused_url("its host is not on the public Internet"));
            return true;
        });
        return CURL_SOCKET_BAD;
    }
    const int opened = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    register_descriptor(opened);
    return opened;
}

/// A forked child may also hold the socket; closing it here then does not notify the peer.
int Hop::on_close(void*, curl_socket_t opened) noexcept {
    shutdown(opened, SHUT_RDWR);
    unregister_descriptor(opened);
    return close(opened);
}

/// Called before the request is sent, on any connection.
int Hop::on_connected(void* self, char* peer, char*, int port, int) noexcept {
    Hop& hop = *static_cast<Hop*>(self);
    return hop.guarded([&] { return hop.check_peer(peer, port); }) ? CURL_PREREQFUNC_OK
                                                                   : CURL_PREREQFUNC_ABORT;
}

bool Hop::check_peer(const char* address, int port) {
    const auto parsed = parse_address(address);
    if (!parsed || !may_connect({.address = *parsed, .port = static_cast<std::uint16_t>(port)})) {
        fail(refused_url("its host is not on the public Internet"));
        return false;
    }
    connected_ = true;
    last_byte_ = window_start_ = Clock::now();
    return true;
}

bool Hop::take_header(std::string_view line) {
    last_byte_ = Clock::now();
    const auto ended = head_.take_line(line);
    if (!ended) {
        fail(ended.error());
        return false;
    }
    return !*ended || take_head();
}

/// Returns false if the body must not be read: for a redirect, and for a wrong range.
bool Hop::take_head() {
    stopped_at_head_ = head_.is_redirect() || head_.range_refused();
    if (stopped_at_head_) return false;
    monitor_.progress.body_bytes = head_.offset();
    monitor_.progress.expected_bytes = head_.content_length();
    if (monitor_.progress.expected_bytes) *monitor_.progress.expected_bytes += head_.offset();
    if (request_.options.started) {
        if (auto started = request_.options.started(head_.start()); !started) {
            fail(started.error());
            return false;
        }
    }
    last_byte_ = window_start_ = Clock::now();
    return true;
}

bool Hop::take_body(std::span<const std::byte> piece) {
    const std::uint64_t allowed = request_.options.limits.body_bytes;
    const std::uint64_t max_bytes = allowed - std::min(allowed, head_.offset());
    body_bytes_ += piece.size();
    if (body_bytes_ > max_bytes || received() > max_bytes) {
        fail({.code = ErrorCode::answer_too_large,
              .message = "the response is too large (allowed " + std::to_string(allowed) +
                         " bytes, both before and after decompression)"});
        return false;
    }
    const Clock::time_point before = Clock::now();
    auto taken = sink_(piece);
    if (taken) {
        monitor_.progress.body_bytes = head_.offset() + body_bytes_;
        taken = monitor_.check_if_due();
    }
    const Clock::time_point after = Clock::now();
    window_start_ += after - before;
    last_byte_ = after;
    if (!taken) fail(taken.error());
    return taken.has_value();
}

std::uint64_t Hop::received() const {
    curl_off_t bytes = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_SIZE_DOWNLOAD_T, &bytes);
    return static_cast<std::uint64_t>(bytes);
}

Result<void> Hop::pin_addresses() {
    if (request_.url.address) return {};
    std::string entry = request_.url.host + ':' + std::to_string(request_.url.port) + ':';
    const std::size_t count = std::min(request_.addresses.size(), max_addresses);
    for (std::size_t index = 0; index < count; ++index) {
        const Address& address = request_.addresses[index];
        if (index > 0) entry += ',';
        entry += address.is_ipv6 ? '[' + to_text(address) + ']' : to_text(address);
    }
    pinned_.reset(curl_slist_append(nullptr, entry.c_str()));
    if (pinned_ == nullptr) {
        return no_memory();
    }
    curl_easy_setopt(easy_.get(), CURLOPT_RESOLVE, pinned_.get());
    return {};
}

Result<void> Hop::request_range() {
    const FetchResume& resume = request_.resume;
    if (resume.offset_bytes == 0) return {};
    // Not CURLOPT_RESUME_FROM, which fails if a server sends the whole body.
    const std::string range = std::to_string(resume.offset_bytes) + '-';
    if (curl_easy_setopt(easy_.get(), CURLOPT_RANGE, range.c_str()) != CURLE_OK) {
        return no_memory();
    }
    if (!is_strong_etag(resume.etag)) return {};
    headers_.reset(curl_slist_append(nullptr, ("If-Range: " + resume.etag).c_str()));
    if (headers_ == nullptr) {
        return no_memory();
    }
    curl_easy_setopt(easy_.get(), CURLOPT_HTTPHEADER, headers_.get());
    return {};
}

Result<void> Hop::set_up() {
    easy_.reset(curl_easy_init());
    multi_.reset(curl_multi_init());
    if (easy_ == nullptr || multi_ == nullptr) {
        return no_memory();
    }
    bool done = true;
    const auto set = [&](CURLoption option, auto value) {
        done = curl_easy_setopt(easy_.get(), option, value) == CURLE_OK && done;
    };
    set(CURLOPT_CURLU, request_.url.handle.get());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 0L);  // The caller checks each hop first.
    set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    set(CURLOPT_PROXY, "");  // Also ignore proxies from the environment.
    set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    // Requests an unencoded body, but decodes it if the server compresses it anyway.
    set(CURLOPT_ACCEPT_ENCODING, "identity");
    set(CURLOPT_FRESH_CONNECT, 1L);
    set(CURLOPT_FORBID_REUSE, 1L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_BUFFERSIZE, receive_bytes);
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request_.options.limits.connect_ms));
    set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    set(CURLOPT_SSL_VERIFYPEER, request_.verified ? 1L : 0L);
    set(CURLOPT_SSL_VERIFYHOST, request_.verified ? 2L : 0L);
    set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
    const std::string& bundle = request_.certificate_bundle;
    if (!bundle.empty()) done = trust(easy_.get(), bundle) && done;
    const std::string user_agent = "polymux/" + std::string(version());
    set(CURLOPT_USERAGENT, user_agent.c_str());
    set(CURLOPT_HEADERFUNCTION, &Hop::on_header);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_WRITEFUNCTION, &Hop::on_body);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_OPENSOCKETFUNCTION, &Hop::on_socket);
    set(CURLOPT_OPENSOCKETDATA, this);
    set(CURLOPT_CLOSESOCKETFUNCTION, &Hop::on_close);
    set(CURLOPT_PREREQFUNCTION, &Hop::on_connected);
    set(CURLOPT_PREREQDATA, this);
    if (!done) {
        return Error{.code = ErrorCode::internal, .message = "libcurl lacks a required feature"};
    }
    if (auto asked = request_range(); !asked) return asked;
    return pin_addresses();
}

Result<void> Hop::check_clocks() {
    const FetchLimits& limits = request_.options.limits;
    const Clock::time_point now = Clock::now();
    if (!connected_) {
        return now < request_.connect_deadline ? Result<void>() : timeout_error("connect");
    }
    const std::uint64_t bytes = received();
    if (bytes != seen_bytes_) {
        seen_bytes_ = bytes;
        last_byte_ = now;
    }
    if (now - last_byte_ >= milliseconds(limits.idle_ms)) return timeout_error("idle");
    if (!head_.complete() || limits.rate_bytes_per_s == 0) return {};
    const milliseconds window(limits.rate_window_ms);
    if (now - window_start_ < window) return {};
    const std::uint64_t min_bytes =
        std::uint64_t{limits.rate_bytes_per_s} * limits.rate_window_ms / 1000;
    if (bytes - window_bytes_ < min_bytes) return timeout_error("rate");
    window_bytes_ = bytes;
    window_start_ = now;
    return {};
}

Result<void> Hop::drive() {
    for (int running = 1;;) {
        const CURLMcode code = curl_multi_perform(multi_.get(), &running);
        if (code != CURLM_OK) {
            return Error{.code = ErrorCode::internal,
                         .message = std::string("libcurl failed during the transfer: ") +
                                    curl_multi_strerror(code)};
        }
        if (running == 0) return {};
        if (auto goes_on = monitor_.check(); !goes_on) return goes_on;
        if (auto in_time = check_clocks(); !in_time) return in_time;
        curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(check_interval.count()),
                        nullptr);
    }
}

Error Hop::failure_of(CURLcode outcome) const {
    // A header line over libcurl's limit ends like this, before any part of it was delivered.
    const bool in_head = connected_ && !head_.complete();
    if (in_head && (outcome == CURLE_OUT_OF_MEMORY || outcome == curle_too_large)) {
        return {.code = ErrorCode::answer_too_large,
                .message = "the response has a header field that is too large"};
    }
    return curl_error(outcome);
}

Result<HopResponse> Hop::finish(CURLcode outcome) {
    if (failure_) return *failure_;
    if (outcome != CURLE_OK && !stopped_at_head_) return failure_of(outcome);
    // libcurl treats an incomplete head as complete.
    if (!head_.complete()) return curl_error(CURLE_RECV_ERROR);
    // For a remainder without Content-Length, only its Content-Range shows where it ends.
    const bool is_rest = head_.offset() > 0 && !stopped_at_head_;
    if (is_rest && body_bytes_ != head_.content_length()) return curl_error(CURLE_PARTIAL_FILE);
    HopResponse response{.status = head_.status(),
                         .location = {},
                         .range_refused = head_.range_refused(),
                         .headers = std::move(head_.headers),
                         .body_bytes = body_bytes_,
                         .received_bytes = received(),
                         .offset = head_.offset()};
    if (!stopped_at_head_ || response.range_refused) return response;
    response.location = *find_header(response.headers, "location");
    const auto locations = std::ranges::count_if(response.headers, [](const auto& header) {
        return lower_case(header.first) == "location";
    });
    if (locations > 1) return refused_url("a redirect has several Location header fields");
    return response;
}

Result<HopResponse> Hop::run() {
    if (auto ready = set_up(); !ready) return ready.error();
    const CURLMcode added = curl_multi_add_handle(multi_.get(), easy_.get());
    if (added != CURLM_OK) {
        return Error{.code = ErrorCode::internal,
                     .message = std::string("libcurl cannot start the transfer: ") +
                                curl_multi_strerror(added)};
    }
    auto driven = drive();
    int left = 0;
    const CURLMsg* const message = curl_multi_info_read(multi_.get(), &left);
    const CURLcode outcome = message != nullptr ? message->data.result : CURLE_ABORTED_BY_CALLBACK;
    auto response = driven ? finish(outcome) : Result<HopResponse>(driven.error());
    curl_multi_remove_handle(multi_.get(), easy_.get());
    return response;
}

}  // namespace

Result<HopResponse> run_hop(const HopRequest& request, FetchSink sink, FetchMonitor& monitor) {
    return Hop(request, sink, monitor).run();
}

}  // namespace polymux::transport
