#include "polymux/server/exchange.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <utility>

#include "ascii.hpp"
#include "server/reasons.hpp"
#include "server/shared.hpp"

namespace polymux::server {

namespace {

/// More unsent data than this makes the application wait.
constexpr std::size_t room_bytes = std::size_t{64} << 10;

/// RFC 9110, 5.6.7. Changes once a second.
std::string_view date_field() {
    thread_local std::time_t made_at = 0;
    thread_local std::array<char, 64> text{};
    thread_local std::size_t size = 0;
    const std::time_t now = std::time(nullptr);
    if (now != made_at || size == 0) {
        std::tm parts{};
        gmtime_r(&now, &parts);
        // The process never sets a locale for times.
        size =
            std::strftime(text.data(), text.size(), "date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
        made_at = now;
    }
    return {text.data(), size};
}

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

void Exchange::start(int status, std::span<const Field> fields) {
    if (std::exchange(is_started_, true)) return;
    is_bodiless_ = head_.method == "HEAD" || status == 204 || status == 304;
    {
        // The rest of a body that comes after its response could be parsed as a request.
        const std::scoped_lock lock(mutex_);
        closes_ = !wants_keep_alive_ || !is_complete_;
    }
    if (outbox_->shared->is_draining) closes_ = true;
    std::string& out = head_out_;
    out.reserve(512);
    out += "HTTP/1.1 ";
    std::array<char, 12> digits{};
    const auto end = std::to_chars(digits.begin(), digits.end(), status).ptr;
    out.append(digits.data(), end);
    out += ' ';
    out += reason_of(status);
    out += "\r\n";
    out += date_field();
    for (const Field& field : fields) {
        if (same_ignoring_case(field.name, "connection")) {
            if (same_ignoring_case(field.value, "close")) closes_ = true;
            continue;
        }
        if (same_ignoring_case(field.name, "transfer-encoding")) continue;
        if (same_ignoring_case(field.name, "content-length")) {
            is_measured_ =
                std::from_chars(field.value.begin(), field.value.end(), left_bytes_).ec ==
                std::errc();
        }
        out += field.name;
        out += ": ";
        out += field.value;
        out += "\r\n";
    }
    if (!is_measured_ && !is_bodiless_) {
        if (head_.is_http_1_0) {
            closes_ = true;  // HTTP/1.0 has no chunks: the end of the connection ends the body.
        } else {
            is_chunked_ = true;
            out += "transfer-encoding: chunked\r\n";
        }
    }
    if (closes_) {
        out += "connection: close\r\n";
    } else if (head_.is_http_1_0) {
        out += "connection: keep-alive\r\n";
    }
    out += "\r\n";
}

bool Exchange::write(std::string_view bytes, bool is_last) {
    if (!is_started_ || is_ended_) return true;
    bool fits = true;
    if (is_bodiless_) {
        bytes = {};
    } else if (is_measured_) {
        fits = bytes.size() <= left_bytes_;
        bytes = bytes.substr(0, left_bytes_);
        left_bytes_ -= bytes.size();
        fits = fits && (!is_last || left_bytes_ == 0);
        if (!fits) is_last = closes_ = true;
    }
    std::string out = std::exchange(head_out_, {});
    if (is_chunked_) {
        out.reserve(out.size() + bytes.size() + 32);
        if (!bytes.empty()) {
            std::array<char, 16> digits{};
            const auto end = std::to_chars(digits.begin(), digits.end(), bytes.size(), 16).ptr;
            out.append(digits.data(), end);
            out += "\r\n";
            out += bytes;
            out += "\r\n";
        }
        if (is_last) out += "0\r\n\r\n";
    } else {
        out += bytes;
    }
    is_ended_ = is_last;
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

void Exchange::abort() {
    outbox_->commands.post({.kind = Command::Kind::abort, .exchange = shared_from_this()});
}

}  // namespace polymux::server
