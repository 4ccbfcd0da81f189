#include "transport/transfer.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "transport/callbacks.hpp"
#include "transport/failures.hpp"
#include "transport/retry.hpp"
#include "transport/trust.hpp"

namespace polymux::transport {

namespace {

constexpr long stream_buffer_bytes = 16L << 10U;
constexpr long file_buffer_bytes = 256L << 10U;
/// The fastest size on two of three kinds of machine, and near the best on the third.
constexpr long upload_buffer_bytes = 80L << 10U;
constexpr milliseconds drain_time{1000};
constexpr const char* no_expect = "Expect:";  // Else libcurl waits a second for servers without it.
constexpr const char* chunked = "Transfer-Encoding: chunked";
constexpr const char* no_content_type = "Content-Type:";  // Else libcurl says it were a form.
/// What libcurl takes for no limit is 300 s, and what does not fit in an int wraps: 24 days are
/// none.
constexpr std::int64_t longest_connect_ms = std::numeric_limits<int>::max();

/// Of streams: an event comes when it is sent, and not when a coding has filled a block.
constexpr std::string_view no_coding = "Accept-Encoding: identity";

/// Whether one of the header fields has this one's name.
bool names(const std::vector<std::string>& fields, std::string_view wanted) noexcept {
    const std::size_t length = wanted.find(':');
    return std::ranges::any_of(fields, [&](const std::string& field) {
        return field.size() > length && field[length] == ':' &&
               curl_strnequal(wanted.data(), field.c_str(), length) != 0;
    });
}

}  // namespace

std::unique_ptr<Transfer> Transfer::create(Surroundings& surroundings) {
    EasyHandle easy(curl_easy_init());
    if (!easy) return nullptr;
    auto made = std::make_unique<Transfer>(std::move(easy), surroundings);
    if (!set_callbacks(*made, surroundings) || !made->set_constants()) return nullptr;
    return made;
}

Transfer::~Transfer() = default;

bool Transfer::set_constants() {
    const SessionCommon& session = *surroundings_.session;
    const SessionOptions& options = session.options;
    Setter set(handle());
    set(CURLOPT_PRIVATE, this);
    set(CURLOPT_ERRORBUFFER, detail_.data());
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_QUICK_EXIT, 1L);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    // Set, even to nothing, they keep libcurl from asking the environment.
    set(CURLOPT_PROXY, options.proxy.c_str());
    set(CURLOPT_NOPROXY, options.no_proxy.c_str());
    // A folder of certificates would be read anew for each connection.
    set(CURLOPT_CAPATH, nullptr);
    set(CURLOPT_CAINFO, nullptr);
    const bool trusts = options.verify && !session.certificates.empty();
    if (trusts && !trust(handle(), session.certificates)) return false;
    if (!options.client_certificate.empty()) {
        set(CURLOPT_SSLCERT, options.client_certificate.c_str());
        // Else OpenSSL would ask whoever sits before the terminal for the key's pass phrase.
        set(CURLOPT_KEYPASSWD, "");
    }
    set(CURLOPT_SSL_VERIFYPEER, options.verify ? 1L : 0L);
    set(CURLOPT_SSL_VERIFYHOST, options.verify ? 2L : 0L);
    set(CURLOPT_TCP_KEEPALIVE, 1L);
    return set.succeeded();
}

void Transfer::begin(std::shared_ptr<Exchange> exchange) {
    exchange_ = std::move(exchange);
    exchange_->transfer_ = this;
    began_ = surroundings_.now;
    tries_ = 0;
}

Result<void> Transfer::configure() {
    const Task& task = exchange_->task();
    ++tries_;
    phase_ = Phase::connecting;
    try_began_ = surroundings_.now;
    informed_ = false;
    spoiled_ = streamed_ = any_chunk_ = paused_ = sent_all_ = asked_before_ = peer_had_nothing_ =
        head_complete_ = false;
    head_.reset();
    building_ = {};
    fields_ = head_bytes_ = drained_bytes_ = text_offset_ = 0;
    collected_.clear();
    own_failure_.reset();
    detail_[0] = '\0';
    header_nodes_.clear();
    for (const std::string& field : task.request.headers) header_nodes_.add(field.c_str());
    if (task.reading == Reading::chat && !names(task.request.headers, no_coding)) {
        header_nodes_.add(no_coding.data());
    }
    if (auto body = set_body(); !body) return body;
    Setter set(handle());
    set_way(set);
    set(CURLOPT_HTTPHEADER, all_fields());
    const auto connect = task.deadlines.connect.value_or(milliseconds{longest_connect_ms});
    set(CURLOPT_CONNECTTIMEOUT_MS,
        static_cast<long>(
            std::clamp(std::int64_t{connect.count()}, std::int64_t{1}, longest_connect_ms)));
    set(CURLOPT_BUFFERSIZE,
        task.reading == Reading::pieces ? file_buffer_bytes : stream_buffer_bytes);
    set(CURLOPT_ACCEPT_ENCODING, task.reading == Reading::whole ? "" : nullptr);
    const bool is_last = task.reading == Reading::chat && server_closes_after_streams();
    set(CURLOPT_FORBID_REUSE, is_last || !surroundings_.session->options.reuse ? 1L : 0L);
    if (!set.succeeded()) return no_memory();
    return {};
}

namespace {

/// Without TLS nobody speaks HTTP/2, and for as long as libcurl hopes for it, it lets one request
/// wait for another.
bool offers_http2(const Task& task, const SessionCommon& session) noexcept {
    return session.options.http2 && task.request.url.starts_with("https:");
}

}  // namespace

bool Transfer::goes_alone(const Task& task, const SessionCommon& session) noexcept {
    // An answer that is read in pieces may have to wait for its reader. On a connection with others
    // libcurl would go on reading, and keep all that the server sends of it.
    return task.reading != Reading::whole && offers_http2(task, session) &&
           session.multiplexes.load(std::memory_order_relaxed);
}

/// Where the request goes, in which version of HTTP, and over whose connection.
void Transfer::set_way(Setter& set) {
    const Task& task = exchange_->task();
    const SessionCommon& session = *surroundings_.session;
    const bool http2 = offers_http2(task, session);
    alone_ = goes_alone(task, session);
    if (url_ != task.request.url) {
        url_ = task.request.url;
        set(CURLOPT_URL, url_.c_str());
        set(CURLOPT_HTTP_VERSION,
            static_cast<long>(http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    }
    // Requests that start together wait for the first one's connection, and share it. Where that is
    // known to be impossible, each has one of its own.
    const bool shares = session.multiplexes.load(std::memory_order_relaxed);
    set(CURLOPT_PIPEWAIT, shares && !alone_ ? 1L : 0L);
}

/// The request's header fields, and those of the session whose names it has not.
curl_slist* Transfer::all_fields() {
    const SessionCommon& session = *surroundings_.session;
    const auto& given = exchange_->task().request.headers;
    const auto is_given = [&given](const std::string& field) { return names(given, field); };
    if (std::ranges::none_of(session.options.headers, is_given)) {
        return header_nodes_.link(session.headers);
    }
    for (const std::string& field : session.options.headers) {
        if (!is_given(field)) header_nodes_.add(field.c_str());
    }
    return header_nodes_.link(nullptr);
}

Result<void> Transfer::set_body() {
    const Request& request = exchange_->task().request;
    Setter set(handle());
    exchange_->sent_bytes_.store(0, std::memory_order_relaxed);
    // A handle keeps what it was told for its last request.
    const bool removes = request.method == "DELETE";
    set(CURLOPT_CUSTOMREQUEST, removes ? "DELETE" : nullptr);
    if (request.method == "GET" || removes) {
        set(CURLOPT_HTTPGET, 1L);
    } else {
        set(CURLOPT_POST, 1L);
        const auto* text = std::get_if<std::string>(&request.body);
        const auto* form = std::get_if<std::shared_ptr<request::MultipartBody>>(&request.body);
        const std::size_t text_bytes = text == nullptr ? 0 : text->size();
        header_nodes_.add(no_expect);
        if (text == nullptr && form == nullptr) header_nodes_.add(no_content_type);
        if (form == nullptr && text_bytes <= small_body_bytes) {
            set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(text_bytes));
            set(CURLOPT_POSTFIELDS, text == nullptr ? "" : text->data());
        } else {
            auto length = form == nullptr ? text_bytes : (*form)->length_bytes();
            set(CURLOPT_POSTFIELDS, nullptr);
            set(CURLOPT_POSTFIELDSIZE_LARGE, length ? static_cast<curl_off_t>(*length) : -1);
            set(CURLOPT_UPLOAD_BUFFERSIZE, upload_buffer_bytes);
            if (!length) header_nodes_.add(chunked);
            if (form != nullptr && tries_ > 1) {
                if (auto rewound = (*form)->rewind(); !rewound) return rewound;
            }
        }
    }
    if (!set.succeeded()) return no_memory();
    return {};
}

std::optional<Due> Transfer::due() const {
    std::optional<Due> first;
    const auto consider = [&first](steady_clock::time_point since, std::string_view name,
                                   const std::optional<milliseconds>& length) {
        if (length && (!first || since + *length < first->at)) {
            first = Due{.at = since + *length, .name = name, .length = *length};
        }
    };
    if (phase_ == Phase::backoff || phase_ == Phase::draining) {
        first = Due{.at = until_, .name = {}};
    }
    if (!exchange_) return first;
    const Deadlines& deadlines = exchange_->task().deadlines;
    consider(began_, "total", deadlines.total);
    if (paused_) return first;
    const bool chat = exchange_->task().reading == Reading::chat && (!head_ || succeeded());
    // libcurl's own count stops while a request waits for the connection that another begins.
    if (phase_ == Phase::connecting) consider(try_began_, "connect", deadlines.connect);
    if (phase_ == Phase::sending) consider(last_sent_, "write", deadlines.write);
    const bool in_head = phase_ == Phase::waiting && answers();
    const bool before_chunk = chat && !any_chunk_ && phase_ == Phase::receiving;
    if (before_chunk || (phase_ == Phase::waiting && (chat || !in_head))) {
        consider(last_sent_, "first_byte", deadlines.first_byte);
    }
    if (in_head && !(chat && informed_)) {
        const auto last = surroundings_.now - tcp_facts(socket_).since_last_byte;
        consider(std::max(last_received_, last), "idle", deadlines.idle);
    }
    // A server may send its head at once, and think for as long as it likes about the first chunk.
    if (phase_ == Phase::receiving && (any_chunk_ || !chat)) {
        consider(last_received_, "idle", deadlines.idle);
        if (any_chunk_) consider(last_chunk_, "event", deadlines.event);
    }
    return first;
}

steady_clock::time_point Transfer::next_look() const {
    steady_clock::time_point at = steady_clock::time_point::max();
    if (const auto next = due()) at = next->at;
    if (!exchange_) return at;
    const Deadlines& deadlines = exchange_->task().deadlines;
    for (const auto& length :
         {deadlines.write, deadlines.first_byte, deadlines.idle, deadlines.event}) {
        if (length) at = std::min(at, surroundings_.now + *length);
    }
    return at;
}

CURLcode Transfer::resume() noexcept {
    paused_ = false;
    last_sent_ = last_received_ = last_chunk_ = surroundings_.now;
    return curl_easy_pause(handle(), CURLPAUSE_CONT);
}

bool Transfer::decodes() const noexcept {
    return phase_ == Phase::receiving && succeeded() && exchange_->task().reading == Reading::chat;
}

bool Transfer::succeeded() const noexcept {
    constexpr int first = 200;
    constexpr int last = 299;
    return head_ && head_->status >= first && head_->status <= last;
}

/// Whether a byte of an answer has come: of half a line libcurl hands nothing over. It takes the
/// first byte of a body that it asks for in pieces for one, so that the kernel is asked there;
/// over TLS that does not know what of it is an answer, and half of a first line counts for none.
bool Transfer::answers() const noexcept {
    if (head_bytes_ > 0) return true;
    if (!sends_at_once()) {
        return url_.starts_with("http:") && tcp_facts(socket_).received_bytes > received_before_;
    }
    curl_off_t first_byte_us = 0;
    curl_easy_getinfo(handle(), CURLINFO_STARTTRANSFER_TIME_T, &first_byte_us);
    return first_byte_us > 0;
}

bool Transfer::repeatable() const noexcept {
    return exchange_->task().retries.repeatable ||
           surroundings_.session->repeatable.load(std::memory_order_relaxed);
}

bool Transfer::can_rewind() const noexcept {
    const auto* form =
        std::get_if<std::shared_ptr<request::MultipartBody>>(&exchange_->task().request.body);
    return form == nullptr || tries_ == 0 || (*form)->can_rewind();
}

bool Transfer::take_spoiled() noexcept {
    if (!std::exchange(spoiled_, false)) return false;
    --tries_;
    return true;
}

std::optional<Error> Transfer::failure_of(CURLcode code) {
    if (own_failure_) return std::exchange(own_failure_, std::nullopt);
    // A status that is no success says what is wrong, however its body ended.
    if (head_ && (code == CURLE_OK || !succeeded())) return std::nullopt;
    long os_errno = 0;
    curl_easy_getinfo(handle(), CURLINFO_OS_ERRNO, &os_errno);
    const CurlFailure failure{.code = code == CURLE_OK ? CURLE_GOT_NOTHING : code,
                              .detail = detail_.data(),
                              .os_errno = os_errno,
                              .connected = phase_ != Phase::connecting,
                              .answered = head_ != nullptr,
                              .unread = head_ != nullptr && paused_};
    return error_of(failure, exchange_->task().request, exchange_->task().deadlines);
}

std::optional<milliseconds> Transfer::retry_delay(const Error* failure,
                                                  std::uint32_t random) const {
    const Task& task = exchange_->task();
    const TryResult result{
        .failure = failure,
        .head = head_.get(),
        .nothing_sent = phase_ == Phase::connecting || peer_had_nothing_ || !sent_all_,
        .repeatable = repeatable()};
    const bool tries_left = tries_ <= static_cast<unsigned>(std::max(task.retries.max_retries, 0));
    if (!tries_left || !can_rewind() || !worth_retrying(result)) return std::nullopt;
    const auto delay = delay_before_retry(task.retries, tries_, head_.get(), random);
    if (!delay) return std::nullopt;
    const auto total = task.deadlines.total;
    if (total && surroundings_.now + *delay >= began_ + *total) return std::nullopt;
    return delay;
}

void Transfer::end(std::optional<Error> failure) {
    const std::shared_ptr<Exchange> exchange = std::exchange(exchange_, nullptr);
    exchange->transfer_ = nullptr;
    if (phase_ == Phase::receiving && !failure && exchange->task().reading == Reading::chat) {
        // The rest of the answer is a few bytes as a rule; with them the connection is free.
        phase_ = Phase::draining;
        until_ = surroundings_.now + drain_time;
        surroundings_.draining.push_back(this);
    }
    exchange->end({.failure = std::move(failure),
                   .head = head_,
                   .body = std::move(collected_),
                   .tries = std::max(tries_, 1U),
                   .elapsed = surroundings_.now - began_});
    collected_ = {};
}

void Transfer::reset() noexcept {
    leave_socket();
    std::erase(surroundings_.draining, this);
    counted_as_draining = false;
    phase_ = Phase::idle;
    exchange_.reset();
    head_.reset();
    own_failure_.reset();
    ++serial;
    armed_at = steady_clock::time_point::max();
}

}  // namespace polymux::transport
