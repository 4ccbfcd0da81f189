#include "polymux/server/exchange.hpp"

#include <charconv>
#include <ctime>
#include <optional>
#include <system_error>
#include <utility>

#include "ascii.hpp"
#include "polymux/http1/writer.hpp"
#include "server/shared.hpp"

namespace polymux::server {

namespace {

/// More unsent data than this makes the application wait.
constexpr std::size_t room_bytes = std::size_t{64} << 10;

}  // namespace

Exchange::Body Exchange::take_body() {
    Body taken;
    bool resumes = false;
    {
        const std::scoped_lock lock(mutex_);
        taken.bytes.swap(body_);
        taken.is_complete = is_complete_;
        taken.is_disconnected = is_disconnected_ || is_ended_;
        resumes = std::exchange(is_paused_, false);
        has_news_ = false;
    }
    if (resumes)
        outbox_->commands.post(
            {.kind = Command::Kind::resume_reading, .exchange = shared_from_this()});
    if (std::exchange(expects_continue_, false) && !is_started_ && !taken.is_complete &&
        taken.bytes.empty()) {
        outbox_->commands.post(
            {.kind = Command::Kind::send_continue, .exchange = shared_from_this()});
    }
    return taken;
}

std::string_view Exchange::start(int status, std::span<const http1::Field> fields) {
    if (is_started_) return "a second response";
    if (status < 200) return "interim status";
    bool closes = outbox_->shared->is_draining;
    {
        // The rest of a body that comes after its response could be parsed as a request.
        const std::scoped_lock lock(mutex_);
        closes = closes || !wants_keep_alive_ || !is_complete_;
    }
    std::string out;
    out.reserve(512);
    http1::HeadWriter head = http1::HeadWriter::response(out, status);
    head.field("Date", http1::http_date(std::time(nullptr)).text());
    std::optional<std::uint64_t> length;
    for (const http1::Field& field : fields) {
        if (equals_ignoring_case(field.name, "connection")) {
            closes = closes || equals_ignoring_case(trim(field.value), "close");
        } else if (equals_ignoring_case(field.name, "content-length")) {
            const char* const end = field.value.data() + field.value.size();
            const auto [stop, code] = std::from_chars(field.value.data(), end, length.emplace());
            if (code != std::errc() || stop != end) return "invalid Content-Length";
        } else if (!equals_ignoring_case(field.name, "transfer-encoding")) {
            head.field(field.name, field.value);
        }
    }
    const bool has_no_body = head_.method == "HEAD" || status == 204 || status == 304;
    if (length && status != 204) {
        head.content_length(*length);
    } else if (status != 204 && status != 304) {
        if (head_.is_http_1_0) {
            head.until_close();  // HTTP/1.0 has no chunks.
            closes = true;
        } else {
            head.chunked();
        }
    }
    if (closes) head.close();
    if (!head.finish()) return head.failure();
    if (has_no_body) {
        framing_ = http1::BodyFraming::none;
    } else if (length) {
        framing_ = http1::BodyFraming::length;
    } else {
        framing_ =
            head_.is_http_1_0 ? http1::BodyFraming::until_close : http1::BodyFraming::chunked;
    }
    left_bytes_ = length.value_or(0);
    closes_ = closes;
    head_out_ = std::move(out);
    is_started_ = true;
    return {};
}

std::string Exchange::framed(std::string_view bytes, bool& is_last, bool& fits) {
    std::string out = std::exchange(head_out_, {});
    switch (framing_) {
        case http1::BodyFraming::none:
            break;
        case http1::BodyFraming::length:
            fits = bytes.size() <= left_bytes_;
            bytes = bytes.substr(0, left_bytes_);
            left_bytes_ -= bytes.size();
            fits = fits && (!is_last || left_bytes_ == 0);
            if (!fits) is_last = closes_ = true;
            out += bytes;
            break;
        case http1::BodyFraming::chunked:
            http1::append_chunk(out, bytes);
            // Fails for invalid trailers only.
            if (is_last) static_cast<void>(http1::append_last_chunk(out));
            break;
        case http1::BodyFraming::until_close:
            out += bytes;
            break;
    }
    is_ended_ = is_last;
    return out;
}

bool Exchange::write(std::string_view bytes, bool is_last) {
    if (!is_started_ || is_ended_) return true;
    bool fits = true;
    std::string out = framed(bytes, is_last, fits);
    if (out.empty() && !is_last) return fits;
    {
        const std::scoped_lock lock(mutex_);
        if (is_disconnected_) return fits;
        unsent_bytes_ += out.size();
    }
    outbox_->commands.post({.kind = Command::Kind::write,
                            .exchange = shared_from_this(),
                            .bytes = std::move(out),
                            .is_last = is_last,
                            .closes = closes_});
    return fits;
}

bool Exchange::has_room() {
    const std::scoped_lock lock(mutex_);
    wants_room_ = unsent_bytes_ > room_bytes && !is_disconnected_;
    return !wants_room_;
}

void Exchange::disconnect() {
    outbox_->commands.post({.kind = Command::Kind::abort, .exchange = shared_from_this()});
}

}  // namespace polymux::server
