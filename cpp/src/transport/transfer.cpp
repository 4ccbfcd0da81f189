#include "transport/transfer.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <span>
#include <utility>

#include "transport/callbacks.hpp"
#include "transport/failures.hpp"
#include "transport/http2_log.hpp"
#include "transport/retry.hpp"
#include "transport/tcp_facts.hpp"
#include "transport/trust.hpp"

namespace polymux::transport {

namespace {

constexpr long stream_buffer_bytes = 16L << 10U;
constexpr long file_buffer_bytes = 256L << 10U;
/// The fastest size on two of three kinds of machine, and close to the fastest on the third.
constexpr long upload_buffer_bytes = 80L << 10U;
constexpr milliseconds drain_time{1000};
constexpr const char* no_expect = "Expect:";  // Avoids a wait of a second.
constexpr const char* chunked = "Transfer-Encoding: chunked";
constexpr const char* no_content_type = "Content-Type:";  // libcurl would declare a form.
/// libcurl's default limit is 300 s, and values that exceed an int wrap around. 24 days count as no
/// limit.
constexpr std::int64_t max_connect_ms = std::numeric_limits<int>::max();

/// For streams: an event must arrive when it is sent, not when a compression block is full.
constexpr std::string_view no_coding = "Accept-Encoding: identity";

constexpr std::size_t max_field_bytes = std::size_t{256} << 10U;
constexpr std::size_t max_fields = 1000;
/// For a response with an unsuccessful status.
constexpr std::size_t max_error_bytes = std::size_t{1} << 20U;
constexpr std::size_t max_drained_bytes = std::size_t{64} << 10U;

/// Maximum delay between a close and the reset that follows it. The wait blocks the thread's other
/// exchanges, so it happens only if the request has just been sent.
constexpr milliseconds reset_wait{5};
constexpr milliseconds just_sent{200};
/// A server that closes the connection after a stream does so within this time.
constexpr milliseconds hold_off{50};
constexpr milliseconds hold_off_interval{1000};
constexpr milliseconds close_memory{60'000};

/// Whether one of the header fields has this name.
bool has_field(const std::vector<std::string>& fields, std::string_view wanted) noexcept {
    const std::size_t length = wanted.find(':');
    return std::ranges::any_of(fields, [&](const std::string& field) {
        return field.size() > length && field[length] == ':' &&
               curl_strnequal(wanted.data(), field.c_str(), length) != 0;
    });
}

/// `what` continues "the response is too large: ".
Error too_large(const std::string& what) {
    return {.code = ErrorCode::answer_too_large,
            .message = "the response is too large: " + what,
            .stage = "receive"};
}

Error header_too_large() {
    return too_large("its header fields have more than " + std::to_string(max_field_bytes) +
                     " bytes");
}

Error too_many_fields() {
    return too_large("it has more than " + std::to_string(max_fields) + " header fields");
}

Error body_too_large(std::size_t limit_bytes) {
    return too_large("its body has more than " + std::to_string(limit_bytes) + " bytes");
}

/// Parses "HTTP/1.1 200 OK" to 11 and 200.
void read_status_line(std::string_view line, ResponseHead& head) {
    constexpr std::size_t version_begins = 5;  // After "HTTP/".
    constexpr int tens = 10;
    const char* const end = line.data() + line.size();
    int major = 1;
    int minor = 0;
    auto read = std::from_chars(line.data() + version_begins, end, major);
    if (read.ptr != end && *read.ptr == '.') read = std::from_chars(read.ptr + 1, end, minor);
    head.http_version = major * tens + minor;
    while (read.ptr != end && *read.ptr == ' ') ++read.ptr;
    std::from_chars(read.ptr, end, head.status);
}

/// libcurl reads to the end of the connection then.
bool overflows(std::string_view length) noexcept {
    std::int64_t value = 0;
    const auto read = std::from_chars(length.data(), length.data() + length.size(), value);
    return read.ec == std::errc::result_out_of_range;
}

bool is_coded(const ResponseHead& head) {
    const std::string_view coding = head.field("content-encoding");
    return !coding.empty() && coding != "identity";
}

/// HTTP/2 is not used without TLS, and while libcurl hopes for it, requests wait for each other.
bool offers_http2(const Task& task, const SessionCommon& session) noexcept {
    return session.options.http2 && task.request.url.starts_with("https:");
}

}  // namespace

std::unique_ptr<Transfer> Transfer::create(EngineContext& context) {
    EasyHandle easy(curl_easy_init());
    if (!easy) return nullptr;
    auto made = std::make_unique<Transfer>(std::move(easy), context);
    if (!set_callbacks(*made, context) || !made->set_constants()) return nullptr;
    return made;
}

Transfer::~Transfer() {
    easy_.reset();  // It may still call back.
}

bool Transfer::set_constants() {
    const SessionCommon& session = *context_.session;
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
    // Set explicitly, even to empty, to keep libcurl from reading the environment.
    set(CURLOPT_PROXY, options.proxy.c_str());
    set(CURLOPT_NOPROXY, options.no_proxy.c_str());
    // libcurl would read a folder of certificates again for each connection.
    set(CURLOPT_CAPATH, nullptr);
    set(CURLOPT_CAINFO, nullptr);
    const bool trusts = options.verify && !session.certificates.empty();
    if (trusts && !trust(handle(), session.certificates)) return false;
    if (!options.client_certificate.empty()) {
        set(CURLOPT_SSLCERT, options.client_certificate.c_str());
        // Otherwise OpenSSL would prompt on the terminal for the key's passphrase.
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
    began_ = context_.now;
    tries_ = 0;
    resent_ = false;
}

Result<void> Transfer::configure() {
    const Task& task = exchange_->task();
    ++tries_;
    phase_ = Phase::connecting;
    try_began_ = context_.now;
    got_informational_ = false;
    stale_connection_ = streamed_ = any_chunk_ = paused_ = sent_all_ = send_attempted_ =
        peer_got_nothing_ = head_complete_ = refused_ = false;
    stream_ = 0;
    last_stream_.reset();
    head_.reset();
    head_in_progress_ = {};
    field_count_ = head_bytes_ = drained_bytes_ = text_offset_ = 0;
    collected_.clear();
    own_failure_.reset();
    detail_[0] = '\0';
    header_nodes_.clear();
    for (const std::string& field : task.request.headers) header_nodes_.add(field.c_str());
    if (task.response_mode == ResponseMode::chat && !has_field(task.request.headers, no_coding)) {
        header_nodes_.add(no_coding.data());
    }
    if (auto body = set_body(); !body) return body;
    Setter set(handle());
    set_route(set);
    set(CURLOPT_HTTPHEADER, header_list());
    const auto connect = task.deadlines.connect.value_or(milliseconds{max_connect_ms});
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::clamp(std::int64_t{connect.count()},
                                                                std::int64_t{1}, max_connect_ms)));
    // Over HTTP/2, libcurl 7.88 waits forever after a head larger than this buffer.
    const bool large =
        task.response_mode == ResponseMode::raw || offers_http2(task, *context_.session);
    set(CURLOPT_BUFFERSIZE, large ? file_buffer_bytes : stream_buffer_bytes);
    set(CURLOPT_ACCEPT_ENCODING, task.response_mode == ResponseMode::buffered ? "" : nullptr);
    const bool is_last = task.response_mode == ResponseMode::chat && server_closes_after_streams();
    set(CURLOPT_FORBID_REUSE, is_last || !context_.session->options.reuse ? 1L : 0L);
    if (!set.succeeded()) return no_memory();
    return {};
}

bool Transfer::needs_own_connection(const Task& task, const SessionCommon& session) noexcept {
    // A response that is read in pieces may have to wait for its reader. On a shared connection,
    // libcurl would continue reading and buffer everything that the server sends for it.
    return task.response_mode != ResponseMode::buffered && offers_http2(task, session) &&
           session.multiplexes.load(std::memory_order_relaxed);
}

/// Sets where the request goes, with which version of HTTP, and over which connection.
void Transfer::set_route(Setter& set) {
    const Task& task = exchange_->task();
    const SessionCommon& session = *context_.session;
    const bool http2 = offers_http2(task, session);
    own_connection_ = needs_own_connection(task, session);
    if (url_ != task.request.url) {
        url_ = task.request.url;
        set(CURLOPT_URL, url_.c_str());
        set(CURLOPT_HTTP_VERSION,
            static_cast<long>(http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
        set(CURLOPT_VERBOSE, http2 ? 1L : 0L);
        reports_refusals_ = resend_only_refused(http2);
    }
    // Requests that start together wait for the first one's connection, and share it. If sharing is
    // impossible, each gets its own connection.
    const bool shares = session.multiplexes.load(std::memory_order_relaxed);
    set(CURLOPT_PIPEWAIT, shares && !own_connection_ ? 1L : 0L);
}

/// The request's header fields, and those of the session with other names.
curl_slist* Transfer::header_list() {
    const SessionCommon& session = *context_.session;
    const auto& given = exchange_->task().request.headers;
    const auto is_given = [&given](const std::string& field) { return has_field(given, field); };
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
    // A handle keeps the options of its last request.
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

std::optional<PendingTimeout> Transfer::next_timeout() const {
    std::optional<PendingTimeout> first;
    const auto consider = [&first](steady_clock::time_point since, std::string_view name,
                                   const std::optional<milliseconds>& length) {
        if (length && (!first || since + *length < first->at)) {
            first = PendingTimeout{.at = since + *length, .name = name, .length = *length};
        }
    };
    if (phase_ == Phase::backoff || phase_ == Phase::draining) {
        first = PendingTimeout{.at = until_, .name = {}};
    }
    if (!exchange_) return first;
    const Deadlines& deadlines = exchange_->task().deadlines;
    consider(began_, "total", deadlines.total);
    if (paused_) return first;
    const bool chat =
        exchange_->task().response_mode == ResponseMode::chat && (!head_ || succeeded());
    // libcurl's timer stops while a request waits for another's connection.
    if (phase_ == Phase::connecting) consider(try_began_, "connect", deadlines.connect);
    if (phase_ == Phase::sending) consider(last_sent_, "write", deadlines.write);
    const bool in_head = phase_ == Phase::waiting && has_response_byte();
    const bool before_chunk = chat && !any_chunk_ && phase_ == Phase::receiving;
    if (before_chunk || (phase_ == Phase::waiting && (chat || !in_head))) {
        consider(last_sent_, "first_byte", deadlines.first_byte);
    }
    if (in_head && !(chat && got_informational_)) {
        const auto last = context_.now - tcp_facts(socket_).since_last_byte;
        consider(std::max(last_received_, last), "idle", deadlines.idle);
    }
    // A server may send its head at once and take long before the first chunk.
    if (phase_ == Phase::receiving && (any_chunk_ || !chat)) {
        consider(last_received_, "idle", deadlines.idle);
        if (any_chunk_) consider(last_chunk_, "event", deadlines.event);
    }
    return first;
}

steady_clock::time_point Transfer::next_check() const {
    steady_clock::time_point at = steady_clock::time_point::max();
    if (const auto next = next_timeout()) at = next->at;
    if (!exchange_) return at;
    const Deadlines& deadlines = exchange_->task().deadlines;
    for (const auto& length :
         {deadlines.write, deadlines.first_byte, deadlines.idle, deadlines.event}) {
        if (length) at = std::min(at, context_.now + *length);
    }
    return at;
}

CURLcode Transfer::resume() noexcept {
    paused_ = false;
    last_sent_ = last_received_ = last_chunk_ = context_.now;
    return curl_easy_pause(handle(), CURLPAUSE_CONT);
}

bool Transfer::decodes() const noexcept {
    return phase_ == Phase::receiving && succeeded() &&
           exchange_->task().response_mode == ResponseMode::chat;
}

bool Transfer::succeeded() const noexcept {
    constexpr int first = 200;
    constexpr int last = 299;
    return head_ && head_->status >= first && head_->status <= last;
}

/// Whether a byte of a response has arrived. libcurl delivers no incomplete lines, so its callbacks
/// are not enough. If the request body is sent in pieces, libcurl's first-byte time counts the
/// first byte of that body, so the kernel is queried instead. Over TLS, the kernel cannot tell
/// which bytes are response data, so half of a first line does not count.
bool Transfer::has_response_byte() const noexcept {
    if (head_bytes_ > 0) return true;
    if (!sends_in_one_call()) {
        return url_.starts_with("http:") && tcp_facts(socket_).received_bytes > received_before_;
    }
    curl_off_t first_byte_us = 0;
    curl_easy_getinfo(handle(), CURLINFO_STARTTRANSFER_TIME_T, &first_byte_us);
    return first_byte_us > 0;
}

bool Transfer::repeatable() const noexcept {
    return exchange_->task().retries.repeatable ||
           context_.session->repeatable.load(std::memory_order_relaxed);
}

bool Transfer::can_rewind() const noexcept {
    const auto* form =
        std::get_if<std::shared_ptr<request::MultipartBody>>(&exchange_->task().request.body);
    return form == nullptr || tries_ == 0 || (*form)->can_rewind();
}

bool Transfer::take_stale_connection() noexcept {
    if (!std::exchange(stale_connection_, false)) return false;
    --tries_;
    return true;
}

std::optional<Error> Transfer::failure_of(CURLcode code) {
    if (own_failure_) return std::exchange(own_failure_, std::nullopt);
    // An unsuccessful status is the result, however its body ended.
    if (head_ && (code == CURLE_OK || !succeeded())) return std::nullopt;
    // All callbacks succeeded, so bytes followed the end of a compressed body. They are ignored.
    if (code == CURLE_WRITE_ERROR && head_ && is_buffered() && is_coded(*head_))
        return std::nullopt;
    long os_errno = 0;
    long new_connections = 0;
    curl_easy_getinfo(handle(), CURLINFO_OS_ERRNO, &os_errno);
    curl_easy_getinfo(handle(), CURLINFO_NUM_CONNECTS, &new_connections);
    const bool anonymous = new_connections > 0 && url_.starts_with("https:") &&
                           context_.session->options.client_certificate.empty();
    const CurlFailure failure{.code = code == CURLE_OK ? CURLE_GOT_NOTHING : code,
                              .detail = detail_.data(),
                              .os_errno = os_errno,
                              .proxy_status = proxy_status(),
                              .connected = phase_ != Phase::connecting,
                              .anonymous = anonymous,
                              .answered = head_ != nullptr,
                              .unread = head_ != nullptr && paused_};
    return error_of(failure, exchange_->task().request, exchange_->task().deadlines);
}

int Transfer::proxy_status() const noexcept {
    constexpr long first_refusal = 300;
    long status = 0;
    curl_easy_getinfo(handle(), CURLINFO_HTTP_CONNECTCODE, &status);
    return phase_ == Phase::connecting && status >= first_refusal ? static_cast<int>(status) : 0;
}

std::optional<milliseconds> Transfer::retry_delay(const Error* failure,
                                                  std::uint32_t random) const {
    const Task& task = exchange_->task();
    const TryResult result{.failure = failure,
                           .head = head_.get(),
                           .proxy_status = proxy_status(),
                           .nothing_sent = phase_ == Phase::connecting || peer_got_nothing_ ||
                                           was_refused() || !sent_all_,
                           .repeatable = repeatable()};
    const bool tries_left = tries_ <= static_cast<unsigned>(std::max(task.retries.max_retries, 0));
    if (!tries_left || !can_rewind() || !should_retry(result)) return std::nullopt;
    const auto delay = delay_before_retry(task.retries, tries_, head_.get(), random);
    if (!delay) return std::nullopt;
    const auto total = task.deadlines.total;
    if (total && context_.now + *delay >= began_ + *total) return std::nullopt;
    return delay;
}

void Transfer::end(std::optional<Error> failure) {
    const std::shared_ptr<Exchange> exchange = std::exchange(exchange_, nullptr);
    exchange->transfer_ = nullptr;
    if (phase_ == Phase::receiving && !failure &&
        exchange->task().response_mode == ResponseMode::chat) {
        // The rest of the response is usually a few bytes; reading them frees the connection.
        phase_ = Phase::draining;
        until_ = context_.now + drain_time;
        context_.draining.push_back(this);
    }
    exchange->end({.failure = std::move(failure),
                   .head = head_,
                   .body = std::move(collected_),
                   .tries = std::max(tries_, 1U),
                   .retry_reasons = exchange->retry_reasons(),
                   .elapsed = context_.now - began_});
    collected_ = {};
}

void Transfer::reset() noexcept {
    release_socket();
    stream_ = 0;
    last_stream_.reset();
    std::erase(context_.draining, this);
    counted_as_draining = false;
    phase_ = Phase::idle;
    exchange_.reset();
    head_.reset();
    own_failure_.reset();
    ++serial;
    armed_at = steady_clock::time_point::max();
}

// libcurl's callbacks: send the body, receive the response.

bool Transfer::sends_in_one_call() const noexcept {
    const Request& request = exchange_->task().request;
    const auto* text = std::get_if<std::string>(&request.body);
    return std::holds_alternative<std::monostate>(request.body) ||
           (text != nullptr && text->size() <= small_body_bytes);
}

void Transfer::mark_sent(steady_clock::time_point at) noexcept {
    sent_all_ = true;
    last_sent_ = at;
    if (phase_ == Phase::sending) phase_ = Phase::waiting;
}

std::size_t Transfer::read(char* buffer, std::size_t size) {
    const Request& request = exchange_->task().request;
    last_sent_ = context_.now;
    if (std::holds_alternative<std::string>(request.body)) return read_text(buffer, size);
    auto& form = *std::get<std::shared_ptr<request::MultipartBody>>(request.body);
    const auto count = form.read(std::as_writable_bytes(std::span(buffer, size)));
    // Not the round's time, because the caller's source may have blocked meanwhile.
    last_sent_ = steady_clock::now();
    if (!count) {
        own_failure_ = count.error();
        return CURL_READFUNC_ABORT;
    }
    exchange_->sent_bytes_.store(form.sent_bytes(), std::memory_order_relaxed);
    if (form.finished()) mark_sent(last_sent_);
    paused_ = *count == 0 && form.starved();
    if (paused_) exchange_->mark_starved();
    return paused_ ? CURL_READFUNC_PAUSE : *count;
}

std::size_t Transfer::read_text(char* buffer, std::size_t size) {
    const auto& text = std::get<std::string>(exchange_->task().request.body);
    const std::size_t count = text.copy(buffer, size, text_offset_);
    text_offset_ += count;
    exchange_->sent_bytes_.store(text_offset_, std::memory_order_relaxed);
    if (text_offset_ == text.size()) mark_sent(context_.now);
    return count;
}

int Transfer::seek(curl_off_t offset) {
    const Request& request = exchange_->task().request;
    if (offset != 0) return CURL_SEEKFUNC_FAIL;
    if (std::holds_alternative<std::string>(request.body)) {
        text_offset_ = 0;
        return CURL_SEEKFUNC_OK;
    }
    auto& form = *std::get<std::shared_ptr<request::MultipartBody>>(request.body);
    return form.can_rewind() && form.rewind() ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

std::size_t Transfer::fail(Error error) {
    own_failure_ = std::move(error);
    return 0;
}

std::size_t Transfer::on_header_line(std::string_view line) {
    last_received_ = context_.now;
    got_informational_ = false;
    std::string_view field = line;
    while (!field.empty() && (field.back() == '\n' || field.back() == '\r')) field.remove_suffix(1);
    // Informational responses and trailers count too, because their number is unlimited.
    head_bytes_ += line.size();
    if (head_complete_) return on_trailer(field, line.size());
    if (head_bytes_ > max_field_bytes) {
        return fail(header_too_large());
    }
    if (field.starts_with("HTTP/")) {
        head_in_progress_ = {};
        field_count_ = 0;
        read_status_line(field, head_in_progress_);
    } else if (field.empty()) {
        constexpr int first_final_status = 200;
        got_informational_ = head_in_progress_.status < first_final_status;
        if (!got_informational_) on_head();
    } else {
        if (++field_count_ > max_fields) return fail(too_many_fields());
        head_in_progress_.fields.append(field).append("\r\n");
    }
    return own_failure_ ? 0 : line.size();
}

/// The polymux API has no trailers. libcurl stores each of them for the whole transfer.
std::size_t Transfer::on_trailer(std::string_view field, std::size_t line_bytes) {
    if (phase_ == Phase::draining) return drain(line_bytes);
    const bool too_many = !field.empty() && ++field_count_ > max_fields;
    if (!too_many && head_bytes_ <= max_field_bytes) return line_bytes;
    if (!succeeded()) return 0;  // The status still counts.
    return fail(too_many ? too_many_fields() : header_too_large());
}

void Transfer::on_head() {
    const Task& task = exchange_->task();
    head_complete_ = true;
    phase_ = Phase::receiving;
    record_response();
    head_ = std::make_shared<const ResponseHead>(std::move(head_in_progress_));
    SessionCommon& session = *context_.session;
    constexpr int http2 = 20;
    session.multiplexes.store(head_->http_version >= http2, std::memory_order_relaxed);
    if (!session.options.idempotent_field.empty() &&
        !head_->field(session.options.idempotent_field).empty()) {
        session.repeatable.store(true, std::memory_order_relaxed);
    }
    const bool has_length = head_->field("transfer-encoding").empty();
    if (has_length && head_->contradicts_itself("content-length")) {
        fail({.code = ErrorCode::undecodable_answer,
              .message = "the response is invalid: it declares two different body lengths",
              .stage = "receive"});
    } else if (has_length && overflows(head_->field("content-length"))) {
        fail({.code = ErrorCode::undecodable_answer,
              .message = "the response is invalid: its Content-Length has more than 63 bits",
              .stage = "receive"});
    } else if (task.response_mode == ResponseMode::chat && succeeded() && is_coded(*head_)) {
        fail({.code = ErrorCode::undecodable_answer,
              .message = "the stream is compressed, although the request asked for no compression. "
                         "Check for a proxy that compresses responses",
              .stage = "receive"});
    } else if (is_buffered()) {
        curl_off_t length = -1;
        curl_easy_getinfo(handle(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        if (succeeded() && length > 0 &&
            static_cast<std::uint64_t>(length) > task.max_answer_bytes) {
            fail(body_too_large(task.max_answer_bytes));
        }
    } else {
        exchange_->set_head(head_, repeatable());
    }
}

bool Transfer::is_buffered() const noexcept {
    return !succeeded() || exchange_->task().response_mode == ResponseMode::buffered;
}

std::size_t Transfer::on_body(std::string_view bytes) {
    last_received_ = context_.now;
    if (phase_ == Phase::draining) return drain(bytes.size());
    if (is_buffered()) return collect(bytes);
    if (exchange_->task().response_mode == ResponseMode::chat) return decode(bytes);
    paused_ = !exchange_->add_bytes(bytes);
    return paused_ ? CURL_WRITEFUNC_PAUSE : bytes.size();
}

std::size_t Transfer::drain(std::size_t bytes) noexcept {
    drained_bytes_ += bytes;
    return drained_bytes_ > max_drained_bytes ? 0 : bytes;
}

std::size_t Transfer::collect(std::string_view bytes) {
    if (!succeeded()) {
        const std::size_t room = max_error_bytes - collected_.size();
        collected_.append(bytes.substr(0, room));
        // Bytes beyond the limit are not needed; the status still counts.
        return bytes.size() > room ? 0 : bytes.size();
    }
    const std::size_t max_bytes = exchange_->task().max_answer_bytes;
    const std::size_t size = collected_.size() + bytes.size();
    if (size > max_bytes) return fail(body_too_large(max_bytes));
    // The string would otherwise grow to twice the limit. A large body gets its room in one step:
    // untouched pages use no memory, but outgrown buffers would.
    if (size > collected_.capacity()) {
        constexpr std::size_t large = std::size_t{1} << 20U;
        constexpr std::size_t room = std::size_t{64} << 20U;
        const std::size_t wanted = size < large ? size : std::max(size, room);
        collected_.reserve(std::min(max_bytes, std::max(wanted, 2 * collected_.capacity())));
    }
    collected_.append(bytes);
    return bytes.size();
}

std::size_t Transfer::decode(std::string_view bytes) {
    const auto decoded = exchange_->decode(bytes, context_.parser);
    paused_ = !decoded.taken;
    if (paused_) return CURL_WRITEFUNC_PAUSE;
    if (decoded.chunks_came) {
        any_chunk_ = true;
        last_chunk_ = context_.now;
    }
    if (decoded.end == stream::StreamState::open) return bytes.size();
    const bool well = decoded.end == stream::StreamState::finished;
    end({});
    if (well) return bytes.size();
    phase_ = Phase::receiving;  // The remaining data is not needed.
    return 0;
}

// The server may close a reused connection at the moment of the next request. The kernel's
// information then shows whether the server can have read that request. The request is sent again
// only if it cannot.

/// libcurl resends a request if a reused connection turns out to be closed, or if the server
/// refused the request. That is safe only if the server has received or processed nothing of it.
bool Transfer::before_send(int local_port) {
    const bool unprocessed = peer_got_nothing_ || was_refused();
    const bool resends = std::exchange(send_attempted_, true);
    resent_ = resent_ || resends;
    if (resends && sent_all_ && !unprocessed && !repeatable()) {
        own_failure_ = error_of({.code = CURLE_GOT_NOTHING, .detail = {}, .connected = true},
                                exchange_->task().request, exchange_->task().deadlines);
        return false;
    }
    if (resends) {
        const char* const reason = was_refused() ? "the server refused the request"
                                                 : "the connection was closed before the response";
        exchange_->add_retry(std::string(reason) + "; sent again at once");
    }
    peer_got_nothing_ = sent_all_ = refused_ = false;
    long new_connections = 0;
    release_socket();
    curl_easy_getinfo(handle(), CURLINFO_NUM_CONNECTS, &new_connections);
    socket_ = context_.socket_at(local_port);
    const auto found = context_.sockets.find(socket_);
    if (found != context_.sockets.end()) last_stream_ = found->second.last_stream;
    if (found != context_.sockets.end() && found->second.user == nullptr) {
        SocketUse& use = found->second;
        use.user = this;
        use.local_port = local_port;
        use.kept = new_connections == 0;
        if (use.kept) use.before = tcp_facts(socket_);
    }
    if (new_connections == 0 && is_connection_stale()) {
        stale_connection_ = true;
        return false;
    }
    last_sent_ = context_.now;
    phase_ = Phase::sending;
    if (sends_in_one_call()) {
        mark_sent(context_.now);
    } else {
        received_before_ = tcp_facts(socket_).received_bytes;
    }
    return true;
}

/// Makes libcurl resend only requests that an HTTP/2 server refused. Otherwise, libcurl also
/// resends those whose reused connection has ended, and does not say which of both happened. Only
/// this option of RTSP turns that off; HTTP uses it for nothing else. Returns false without RTSP.
bool Transfer::resend_only_refused(bool http2) noexcept {
    const long request = http2 ? CURL_RTSPREQ_RECEIVE : CURL_RTSPREQ_OPTIONS;
    return curl_easy_setopt(handle(), CURLOPT_RTSP_REQUEST, request) == CURLE_OK && http2;
}

/// `stream_` is set only while the request has a stream, because a transfer that looks for another
/// connection may receive the GOAWAY of a connection that it does not use.
void Transfer::on_log(std::string_view line) noexcept {
    const Http2Event event = read_http2_log(line);
    switch (event.kind) {
        case Http2Event::Kind::opened:
            stream_ = event.stream;
            return;
        case Http2Event::Kind::goaway:
            if (stream_ != 0 && last_stream_) *last_stream_ = std::min(*last_stream_, event.stream);
            return;
        case Http2Event::Kind::refused:
            refused_ = reports_refusals_;
            return;
        case Http2Event::Kind::resending:
            refused_ = was_refused();
            stream_ = 0;
            return;
        case Http2Event::Kind::none:
            return;
    }
}

/// Whether an HTTP/2 server has stated that it did not process the request: by REFUSED_STREAM, or
/// by a GOAWAY whose last stream is before the request's (RFC 9113, 6.8 and 8.7).
bool Transfer::was_refused() const noexcept {
    return refused_ || (stream_ != 0 && last_stream_ && stream_ > *last_stream_);
}

/// True for a kept connection on which the server has sent data before a request, or which it has
/// closed. Data on it would be taken for the response. Over TLS, such data may be session tickets,
/// which are not a response.
bool Transfer::is_connection_stale() const noexcept {
    const auto found = context_.sockets.find(socket_);
    if (found == context_.sockets.end() || found->second.user != this) return false;
    char byte = 0;
    const auto count = ::recv(socket_, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
    if (count > 0) return url_.starts_with("http:");
    return count == 0 || (errno != EAGAIN && errno != EINTR);
}

/// A kept connection closes before a response has begun. Determine how much of the request the peer
/// received.
void Transfer::on_socket_closed(curl_socket_t socket, const SocketUse& use) noexcept {
    peer_got_nothing_ = false;
    if (!use.kept || head_bytes_ > 0) return;
    const TcpFacts facts = tcp_facts(socket);
    if (use.before.sent_bytes > 0 && facts.sent_bytes == use.before.sent_bytes) {
        peer_got_nothing_ = true;  // No byte was sent.
        return;
    }
    // A reset alone proves nothing, because the peer may have read the whole request.
    if (detail_[0] != '\0') return;
    // The peer's FIN acknowledges all bytes that it received. If it arrived first and acknowledges
    // nothing of the request, the peer closed before the request.
    if (use.before.acknowledged_bytes > 0 &&
        facts.acknowledged_bytes == use.before.acknowledged_bytes) {
        peer_got_nothing_ = true;
        return;
    }
    // If a reset follows the close, a part of the request was unread or arrived later (RFC 2525,
    // 2.17). Over HTTP/2 that may be other data of this client.
    if (!has_ended(socket)) return;
    const SessionCommon& session = *context_.session;
    if (!url_.starts_with("http:") && session.multiplexes.load(std::memory_order_relaxed)) return;
    const bool just_now = context_.now - last_sent_ < just_sent;
    peer_got_nothing_ = is_reset(socket, just_now ? reset_wait : milliseconds{0});
}

/// Some servers (including llama.cpp's) close the connection after each stream although they
/// promise to keep it, and first read data that has arrived, so it is unknown whether they
/// processed it. The first request right after a stream therefore waits until the server's behavior
/// is known.
std::optional<steady_clock::time_point> Transfer::hold_off_until() noexcept {
    const SessionCommon& session = *context_.session;
    if (!context_.stream_ended || repeatable() ||
        session.after_streams.load(std::memory_order_relaxed) != AfterStreams::unknown) {
        return std::nullopt;
    }
    const auto now = context_.now;
    const auto until = *context_.stream_ended + hold_off;
    if (now >= until) return std::nullopt;
    if (context_.last_hold_off && now < *context_.last_hold_off + hold_off_interval)
        return std::nullopt;
    context_.last_hold_off = now;
    return until;
}

void Transfer::record_response() noexcept {
    streamed_ = exchange_->task().response_mode == ResponseMode::chat;
    const auto found = context_.sockets.find(socket_);
    if (found == context_.sockets.end() || !found->second.stream_ended) return;
    found->second.stream_ended.reset();
    context_.session->after_streams.store(AfterStreams::keeps, std::memory_order_relaxed);
}

/// As far as known: the close may have been a restart, so the observation expires.
bool Transfer::server_closes_after_streams() const noexcept {
    SessionCommon& session = *context_.session;
    if (session.after_streams.load(std::memory_order_relaxed) != AfterStreams::closes) return false;
    const auto last = session.closed_after_stream.load(std::memory_order_relaxed);
    if (context_.now - last < close_memory) return true;
    session.after_streams.store(AfterStreams::unknown, std::memory_order_relaxed);
    return false;
}

/// A kept connection has no user; a later close must not be reported to this exchange.
void Transfer::release_socket() noexcept {
    const auto found = context_.sockets.find(socket_);
    if (found != context_.sockets.end() && found->second.user == this) {
        found->second.user = nullptr;
        if (std::exchange(streamed_, false)) {
            found->second.stream_ended = context_.stream_ended = context_.now;
        }
    }
    socket_ = CURL_SOCKET_BAD;
}

}  // namespace polymux::transport
