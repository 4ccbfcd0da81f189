// One answer of HTTP/1.1 as it comes: its status, its end, and the events that are in it.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace load {

// What the events of all answers contained. A token is an event whose chunk has some text; where
// that text is a number of many digits, it is the time at which the token was made
// (CLOCK_MONOTONIC, ns).
struct Events {
    std::uint64_t count = 0;
    std::uint64_t tokens = 0;
    std::vector<double> lags_s;
    // Sees every piece of an answer's body before it is read. Default: nobody.
    std::function<void(std::string_view, std::uint64_t)> on_body;
};

class Answer {
public:
    explicit Answer(Events& events) : events_(&events) {}

    // Takes what came at a time; gives how many bytes of it were this answer's.
    std::size_t take(std::string_view data, std::uint64_t now_ns);
    // The connection has ended; whether that ends the answer as it should.
    bool end() { return done() || at_ == At::kUntilClosed; }

    bool done() const { return at_ == At::kDone; }
    bool begun() const { return begun_; }
    bool closes() const { return closes_; }
    int status() const { return status_; }

private:
    enum class At { kHead, kLength, kUntilClosed, kSize, kData, kDataEnd, kTrailer, kDone };

    void read_head();
    void take_byte(char byte);
    void take_body(std::string_view data, std::uint64_t now_ns);
    void take_line(std::string_view line, std::uint64_t now_ns);

    Events* events_;
    At at_ = At::kHead;
    bool begun_ = false;
    bool closes_ = false;
    bool streamed_ = false;
    int status_ = 0;
    std::uint64_t left_ = 0;
    std::string text_;  // the head, then a line of an event, then a chunk's size
    std::string line_;
};

inline void Answer::read_head() {
    std::string lower = text_;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char byte) { return static_cast<char>(std::tolower(byte)); });
    text_.clear();
    status_ = lower.size() > 12 ? std::atoi(lower.c_str() + 9) : 0;
    if (status_ >= 100 && status_ < 200) return;  // The real one follows.
    const auto has = [&lower](std::string_view field) {
        return lower.find(field) != std::string::npos;
    };
    closes_ = has("\r\nconnection: close");
    streamed_ = has("\r\ncontent-type: text/event-stream");
    const std::size_t length = lower.find("\r\ncontent-length: ");
    if (has("\r\ntransfer-encoding: chunked")) {
        at_ = At::kSize;
    } else if (length != std::string::npos) {
        left_ = std::strtoull(lower.c_str() + length + 18, nullptr, 10);
        at_ = left_ == 0 ? At::kDone : At::kLength;
    } else {
        at_ = status_ == 204 || status_ == 304 ? At::kDone : At::kUntilClosed;
    }
}

inline std::size_t Answer::take(std::string_view data, std::uint64_t now_ns) {
    std::size_t used = 0;
    begun_ = begun_ || !data.empty();
    while (used < data.size() && at_ != At::kDone) {
        if (at_ == At::kLength || at_ == At::kData || at_ == At::kUntilClosed) {
            const std::uint64_t most =
                at_ == At::kUntilClosed ? std::numeric_limits<std::uint64_t>::max() : left_;
            const std::size_t step = std::min<std::uint64_t>(most, data.size() - used);
            take_body(data.substr(used, step), now_ns);
            used += step;
            if (at_ == At::kUntilClosed) continue;
            left_ -= step;
            if (left_ == 0) at_ = at_ == At::kLength ? At::kDone : At::kDataEnd;
            continue;
        }
        take_byte(data[used++]);
    }
    return used;
}

inline void Answer::take_byte(char byte) {
    text_ += byte;
    if (byte != '\n') return;
    switch (at_) {
        case At::kHead:
            if (text_.ends_with("\r\n\r\n")) read_head();
            return;
        case At::kSize:
            left_ = std::strtoull(text_.c_str(), nullptr, 16);
            at_ = left_ == 0 ? At::kTrailer : At::kData;
            break;
        case At::kDataEnd:
            at_ = At::kSize;
            break;
        case At::kTrailer:
            if (text_ == "\r\n") at_ = At::kDone;
            break;
        default:
            break;
    }
    text_.clear();
}

inline void Answer::take_body(std::string_view data, std::uint64_t now_ns) {
    if (events_->on_body) events_->on_body(data, now_ns);
    if (!streamed_) return;
    while (!data.empty()) {
        const std::size_t end = data.find('\n');
        if (end == std::string_view::npos) {
            line_ += data;
            return;
        }
        if (line_.empty()) {
            take_line(data.substr(0, end), now_ns);
        } else {
            line_ += data.substr(0, end);
            take_line(line_, now_ns);
            line_.clear();
        }
        data.remove_prefix(end + 1);
    }
}

inline void Answer::take_line(std::string_view line, std::uint64_t now_ns) {
    constexpr std::string_view kContent = "\"content\":\"";
    constexpr std::size_t kStampDigits = 12;
    if (!line.starts_with("data: {")) return;
    ++events_->count;
    const std::size_t at = line.find(kContent);
    if (at == std::string_view::npos) return;
    const std::string_view text = line.substr(at + kContent.size());
    const std::size_t end = text.find('"');
    if (end == 0 || end == std::string_view::npos) return;
    ++events_->tokens;
    if (end >= kStampDigits && std::all_of(text.begin(), text.begin() + static_cast<long>(end),
                                           [](char one) { return one >= '0' && one <= '9'; })) {
        const std::uint64_t stamp_ns = std::strtoull(text.data(), nullptr, 10);
        events_->lags_s.push_back(static_cast<double>(now_ns - stamp_ns) * 1e-9);
    }
}

}  // namespace load
