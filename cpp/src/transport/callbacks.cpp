#include "transport/callbacks.hpp"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <new>
#include <span>
#include <utility>

#include "transport/descriptors.hpp"
#include "transport/failures.hpp"

namespace polymux::transport {

namespace {

constexpr std::size_t most_field_bytes = std::size_t{256} << 10U;
constexpr std::size_t most_fields = 1000;
/// Of an answer whose status is no success.
constexpr std::size_t longest_error_bytes = std::size_t{1} << 20U;
constexpr std::size_t most_drained_bytes = std::size_t{64} << 10U;

Error too_large(std::string_view what, std::size_t limit_bytes) {
    return {.code = ErrorCode::answer_too_large,
            .message = "the answer is refused: " + std::string(what) + " more than " +
                       std::to_string(limit_bytes),
            .stage = "receive"};
}

/// "HTTP/1.1 200 OK" to 11 and 200.
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

}  // namespace

/// The functions that libcurl calls. Nothing is thrown through it.
struct Callbacks {
    static Transfer& of(void* self) { return *static_cast<Transfer*>(self); }

    /// Before the request is sent over a connection that is there.
    static int before_request(void* self, char*, char*, int, int local_port) {
        try {
            return of(self).may_send_again(local_port) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
        } catch (const std::bad_alloc&) {
            return CURL_PREREQFUNC_ABORT;
        }
    }

    static std::size_t read(char* buffer, std::size_t one, std::size_t count, void* self) {
        Transfer& transfer = of(self);
        try {
            return transfer.read(buffer, one * count);
        } catch (const std::bad_alloc&) {
            transfer.own_failure_ = no_memory();
            return CURL_READFUNC_ABORT;
        }
    }

    static int seek(void* self, curl_off_t offset, int origin) {
        Transfer& transfer = of(self);
        try {
            return origin == SEEK_SET ? transfer.seek(offset) : CURL_SEEKFUNC_FAIL;
        } catch (const std::bad_alloc&) {
            return CURL_SEEKFUNC_FAIL;
        }
    }

    static std::size_t field(char* data, std::size_t one, std::size_t count, void* self) {
        return guarded(of(self), &Transfer::take_field, {data, one * count});
    }

    static std::size_t body(char* data, std::size_t one, std::size_t count, void* self) {
        return guarded(of(self), &Transfer::take_body, {data, one * count});
    }

    static std::size_t guarded(Transfer& transfer, std::size_t (Transfer::*take)(std::string_view),
                               std::string_view bytes) {
        try {
            return (transfer.*take)(bytes);
        } catch (const std::bad_alloc&) {
            transfer.own_failure_ = no_memory();
            return 0;
        }
    }

    static curl_socket_t open(void* self, curlsocktype, curl_sockaddr* address) {
        const int opened =
            ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
        if (opened < 0) return CURL_SOCKET_BAD;
        try {
            static_cast<Surroundings*>(self)->sockets[opened] = {};
        } catch (const std::bad_alloc&) {
            ::close(opened);
            return CURL_SOCKET_BAD;
        }
        own(opened);
        return opened;
    }

    static int close(void* self, curl_socket_t socket) {
        auto& surroundings = *static_cast<Surroundings*>(self);
        auto& sockets = surroundings.sockets;
        if (const auto found = sockets.find(socket); found != sockets.end()) {
            const SocketUse& use = found->second;
            if (use.user != nullptr) use.user->socket_closes(socket, use);
            surroundings.learn_from_end(socket, use);
            sockets.erase(found);
        }
        // A child of a fork may have the socket as well. Then closing it here tells the peer
        // nothing, and epoll would go on to tell of it.
        epoll_ctl(surroundings.epoll, EPOLL_CTL_DEL, socket, nullptr);
        ::shutdown(socket, SHUT_RDWR);
        disown(socket);
        return ::close(socket);
    }
};

curl_socket_t Surroundings::socket_at(int local_port) noexcept {
    for (auto& [socket, use] : sockets) {
        if (use.local_port == 0) {
            sockaddr_storage address{};
            socklen_t size = sizeof address;
            if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) continue;
            // The port stands at the same place in both families.
            if (address.ss_family == AF_INET || address.ss_family == AF_INET6) {
                use.local_port = ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);
            }
        }
        if (use.local_port == local_port) return socket;
    }
    return CURL_SOCKET_BAD;
}

bool set_callbacks(Transfer& transfer, Surroundings& surroundings) {
    Setter set(transfer.handle());
    set(CURLOPT_PREREQFUNCTION, &Callbacks::before_request);
    set(CURLOPT_PREREQDATA, &transfer);
    set(CURLOPT_READFUNCTION, &Callbacks::read);
    set(CURLOPT_READDATA, &transfer);
    set(CURLOPT_SEEKFUNCTION, &Callbacks::seek);
    set(CURLOPT_SEEKDATA, &transfer);
    set(CURLOPT_HEADERFUNCTION, &Callbacks::field);
    set(CURLOPT_HEADERDATA, &transfer);
    set(CURLOPT_WRITEFUNCTION, &Callbacks::body);
    set(CURLOPT_WRITEDATA, &transfer);
    set(CURLOPT_OPENSOCKETFUNCTION, &Callbacks::open);
    set(CURLOPT_OPENSOCKETDATA, &surroundings);
    set(CURLOPT_CLOSESOCKETFUNCTION, &Callbacks::close);
    set(CURLOPT_CLOSESOCKETDATA, &surroundings);
    return set.succeeded();
}

bool Transfer::sends_at_once() const noexcept {
    const Request& request = exchange_->task().request;
    const auto* text = std::get_if<std::string>(&request.body);
    return std::holds_alternative<std::monostate>(request.body) ||
           (text != nullptr && text->size() <= small_body_bytes);
}

void Transfer::sent_all(steady_clock::time_point at) noexcept {
    sent_all_ = true;
    last_sent_ = at;
    if (phase_ == Phase::sending) phase_ = Phase::waiting;
}

std::size_t Transfer::read(char* buffer, std::size_t size) {
    const Request& request = exchange_->task().request;
    last_sent_ = surroundings_.now;
    if (std::holds_alternative<std::string>(request.body)) return read_text(buffer, size);
    auto& form = *std::get<std::shared_ptr<request::MultipartBody>>(request.body);
    const auto count = form.read(std::as_writable_bytes(std::span(buffer, size)));
    // Not the round's time: a source of the caller's may have waited meanwhile.
    last_sent_ = steady_clock::now();
    if (!count) {
        own_failure_ = count.error();
        return CURL_READFUNC_ABORT;
    }
    exchange_->sent_bytes_.store(form.sent_bytes(), std::memory_order_relaxed);
    if (form.finished()) sent_all(last_sent_);
    paused_ = *count == 0 && form.starved();
    if (paused_) exchange_->starve();
    return paused_ ? CURL_READFUNC_PAUSE : *count;
}

std::size_t Transfer::read_text(char* buffer, std::size_t size) {
    const auto& text = std::get<std::string>(exchange_->task().request.body);
    const std::size_t count = text.copy(buffer, size, text_offset_);
    text_offset_ += count;
    exchange_->sent_bytes_.store(text_offset_, std::memory_order_relaxed);
    if (text_offset_ == text.size()) sent_all(surroundings_.now);
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

std::size_t Transfer::refuse(Error error) {
    own_failure_ = std::move(error);
    return 0;
}

std::size_t Transfer::take_field(std::string_view line) {
    last_received_ = surroundings_.now;
    informed_ = false;
    std::string_view field = line;
    while (!field.empty() && (field.back() == '\n' || field.back() == '\r')) field.remove_suffix(1);
    // Informational answers and trailers count as well: there may be any number of them.
    head_bytes_ += line.size();
    if (head_complete_) return take_trailer(field, line.size());
    if (head_bytes_ > most_field_bytes) {
        return refuse(too_large("bytes of header fields", most_field_bytes));
    }
    if (field.starts_with("HTTP/")) {
        building_ = {};
        fields_ = 0;
        read_status_line(field, building_);
    } else if (field.empty()) {
        constexpr int first_final_status = 200;
        informed_ = building_.status < first_final_status;
        if (!informed_) take_head();
    } else {
        if (++fields_ > most_fields) return refuse(too_large("header fields", most_fields));
        building_.fields.append(field).append("\r\n");
    }
    return own_failure_ ? 0 : line.size();
}

/// The interface has none. libcurl keeps each of them for as long as the transfer lasts.
std::size_t Transfer::take_trailer(std::string_view field, std::size_t line_bytes) {
    if (phase_ == Phase::draining) return drain(line_bytes);
    const bool too_many = !field.empty() && ++fields_ > most_fields;
    if (!too_many && head_bytes_ <= most_field_bytes) return line_bytes;
    if (!succeeded()) return 0;  // The status still counts.
    return refuse(too_many ? too_large("header fields", most_fields)
                           : too_large("bytes of header fields", most_field_bytes));
}

namespace {

bool is_coded(const ResponseHead& head) {
    const std::string_view coding = head.field("content-encoding");
    return !coding.empty() && coding != "identity";
}

}  // namespace

void Transfer::take_head() {
    const Task& task = exchange_->task();
    head_complete_ = true;
    phase_ = Phase::receiving;
    learn_from_answer();
    head_ = std::make_shared<const ResponseHead>(std::move(building_));
    SessionCommon& session = *surroundings_.session;
    constexpr int http2 = 20;
    session.multiplexes.store(head_->http_version >= http2, std::memory_order_relaxed);
    if (!session.options.idempotent_field.empty() &&
        !head_->field(session.options.idempotent_field).empty()) {
        session.repeatable.store(true, std::memory_order_relaxed);
    }
    if (head_->field("transfer-encoding").empty() && head_->contradicts_itself("content-length")) {
        refuse({.code = ErrorCode::undecodable_answer,
                .message = "the answer is refused: it declares two lengths of its body",
                .stage = "receive"});
    } else if (task.reading == Reading::chat && succeeded() && is_coded(*head_)) {
        refuse({.code = ErrorCode::undecodable_answer,
                .message = "the stream is compressed, which it was asked not to be: is there a "
                           "proxy on the way that compresses what passes?",
                .stage = "receive"});
    } else if (collects()) {
        curl_off_t length = -1;
        curl_easy_getinfo(handle(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        if (succeeded() && length > 0 &&
            static_cast<std::uint64_t>(length) > task.longest_answer_bytes) {
            refuse(too_large("bytes of body", task.longest_answer_bytes));
        }
    } else {
        exchange_->set_head(head_, repeatable());
    }
}

bool Transfer::collects() const noexcept {
    return !succeeded() || exchange_->task().reading == Reading::whole;
}

std::size_t Transfer::take_body(std::string_view bytes) {
    last_received_ = surroundings_.now;
    if (phase_ == Phase::draining) return drain(bytes.size());
    if (collects()) return collect(bytes);
    if (exchange_->task().reading == Reading::chat) return decode(bytes);
    paused_ = !exchange_->add_bytes(bytes);
    return paused_ ? CURL_WRITEFUNC_PAUSE : bytes.size();
}

std::size_t Transfer::drain(std::size_t bytes) noexcept {
    drained_bytes_ += bytes;
    return drained_bytes_ > most_drained_bytes ? 0 : bytes;
}

std::size_t Transfer::collect(std::string_view bytes) {
    if (!succeeded()) {
        const std::size_t room = longest_error_bytes - collected_.size();
        collected_.append(bytes.substr(0, room));
        // What comes beyond that tells nobody anything; without it the status still counts.
        return bytes.size() > room ? 0 : bytes.size();
    }
    const std::size_t longest = exchange_->task().longest_answer_bytes;
    const std::size_t size = collected_.size() + bytes.size();
    if (size > longest) return refuse(too_large("bytes of body", longest));
    // Left alone it would grow to twice of what is allowed. A large one gets its room in one step:
    // pages that nothing is written to take no memory, and buffers left behind would.
    if (size > collected_.capacity()) {
        constexpr std::size_t large = std::size_t{1} << 20U;
        constexpr std::size_t room = std::size_t{64} << 20U;
        const std::size_t wanted = size < large ? size : std::max(size, room);
        collected_.reserve(std::min(longest, std::max(wanted, 2 * collected_.capacity())));
    }
    collected_.append(bytes);
    return bytes.size();
}

std::size_t Transfer::decode(std::string_view bytes) {
    const auto decoded = exchange_->decode(bytes, surroundings_.parser);
    paused_ = !decoded.taken;
    if (paused_) return CURL_WRITEFUNC_PAUSE;
    if (decoded.chunks_came) {
        any_chunk_ = true;
        last_chunk_ = surroundings_.now;
    }
    if (decoded.end == stream::StreamState::open) return bytes.size();
    const bool well = decoded.end == stream::StreamState::finished;
    end({});
    if (well) return bytes.size();
    phase_ = Phase::receiving;  // Nothing of the rest is wanted.
    return 0;
}

}  // namespace polymux::transport
