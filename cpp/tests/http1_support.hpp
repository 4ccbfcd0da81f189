// Reads HTTP/1.1 messages for tests and fuzz targets, and writes down what the parser reports.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "polymux/http1/parser.hpp"
#include "polymux/http1/writer.hpp"

namespace polymux::testing {

/// The events of a parser as one text, which is equal for any division of the input.
class Http1Transcript {
public:
    explicit Http1Transcript(http1::MessageKind kind, const http1::Limits& limits,
                             bool to_head_request = false)
        : limits_(limits), parser_(kind, limits_) {
        parser_.expect_response(to_head_request);
    }
    Http1Transcript(const Http1Transcript&) = delete;
    Http1Transcript& operator=(const Http1Transcript&) = delete;

    /// Reads bytes from a buffer that is freed at the end of the call.
    void read(std::string_view bytes) {
        // The parser must not use bytes of an earlier input.
        const std::unique_ptr<char[]> buffer(new char[bytes.size() + 1]);
        bytes.copy(buffer.get(), bytes.size());
        std::string_view input(buffer.get(), bytes.size());
        while (write_down(parser_.next(input))) continue;
        if (in_message_) parser_.keep_head();
    }

    /// The peer closes the connection.
    void close() {
        while (write_down(parser_.finish())) break;
    }

    http1::Parser& parser() noexcept { return parser_; }
    /// Messages, and the refusal.
    std::string text() const { return text_ + (refused_ ? refusal_ : ""); }
    bool refused() const noexcept { return refused_; }
    std::size_t messages() const noexcept { return messages_; }

private:
    /// Returns whether more events may follow.
    bool write_down(http1::Event event) {
        switch (event) {
            case http1::Event::need_input:
                return false;
            case http1::Event::head:
                in_message_ = true;
                head_ = head_text();
                text_ += head_;
                body_.clear();
                break;
            case http1::Event::body:
                body_ += parser_.body();
                break;
            case http1::Event::end:
                in_message_ = false;
                ++messages_;
                // The views of the head are still valid.
                text_ += head_text() == head_ ? "[body:" + body_ + "]" : "[head changed]";
                add_fields(text_, parser_.trailers());
                text_ += "[end]";
                break;
            case http1::Event::refused:
                if (refused_) return false;
                refused_ = true;
                refusal_ = "[" + body_of_refused() +
                           "refused:" + std::string(to_string(parser_.refusal())) + "]";
                return false;
        }
        return true;
    }

    std::string body_of_refused() const {
        return in_message_ ? "body:" + body_ + "," : std::string();
    }

    std::string head_text() const {
        const http1::MessageHead& head = parser_.head();
        std::string text = "[" + std::string(head.method) + "," + std::string(head.target) + "," +
                           std::string(head.path) + "," + std::string(head.authority) + "," +
                           std::string(head.reason);
        for (const auto number :
             {std::uint64_t{head.expects_continue}, static_cast<std::uint64_t>(head.status),
              static_cast<std::uint64_t>(head.target_form),
              static_cast<std::uint64_t>(head.minor_version), std::uint64_t{head.keep_alive},
              static_cast<std::uint64_t>(head.framing), head.content_length_bytes}) {
            text += "," + std::to_string(number);
        }
        add_fields(text, head.fields);
        return text + "]";
    }

    static void add_fields(std::string& text, const http1::FieldList& fields) {
        for (std::size_t index = 0; index < fields.size(); ++index) {
            text += "{" + std::string(fields[index].name) + "=" + std::string(fields[index].value) +
                    "}";
        }
    }

    http1::Limits limits_;
    http1::Parser parser_;
    std::string text_;
    std::string head_;
    std::string body_;
    std::string refusal_;
    std::size_t messages_ = 0;
    bool in_message_ = false;
    bool refused_ = false;
};

/// Reads `bytes` in pieces whose sizes `next_size` gives (1 or more), and closes at the end.
inline std::string read_http1(http1::MessageKind kind, std::string_view bytes,
                              const http1::Limits& limits,
                              const std::function<std::size_t()>& next_size,
                              bool to_head_request = false) {
    Http1Transcript transcript(kind, limits, to_head_request);
    while (!bytes.empty() && !transcript.refused()) {
        const std::string_view piece = bytes.substr(0, next_size());
        transcript.read(piece);
        bytes.remove_prefix(piece.size());
    }
    if (!transcript.refused()) transcript.close();
    return transcript.text();
}

using Http1Fields = std::vector<std::pair<std::string, std::string>>;

struct Http1Message {
    std::string method;
    std::string target;
    int status = 0;
    http1::BodyFraming framing = http1::BodyFraming::none;
    Http1Fields fields;  ///< Without Content-Length, Transfer-Encoding and Connection.
    std::string body;
    Http1Fields trailers;

    bool operator==(const Http1Message&) const = default;
};

inline Http1Fields copy_http1_fields(const http1::FieldList& fields) {
    Http1Fields copy;
    for (std::size_t index = 0; index < fields.size(); ++index) {
        std::string name(fields[index].name);
        std::transform(name.begin(), name.end(), name.begin(), [](char letter) {
            return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
        });
        if (name == "content-length" || name == "transfer-encoding" || name == "connection") {
            continue;
        }
        copy.emplace_back(fields[index].name, fields[index].value);
    }
    return copy;
}

/// The complete messages in `bytes`, up to the first refusal.
inline std::vector<Http1Message> parse_http1(http1::MessageKind kind, std::string_view bytes,
                                             const http1::Limits& limits) {
    http1::Parser parser(kind, limits);
    std::vector<Http1Message> messages;
    Http1Message message;
    bool is_closed = false;
    while (true) {
        const http1::Event event = is_closed ? parser.finish() : parser.next(bytes);
        switch (event) {
            case http1::Event::need_input:
                if (std::exchange(is_closed, true)) return messages;
                break;
            case http1::Event::refused:
                return messages;
            case http1::Event::head: {
                const http1::MessageHead& head = parser.head();
                message = {.method = std::string(head.method),
                           .target = std::string(head.target),
                           .status = head.status,
                           .framing = head.framing,
                           .fields = copy_http1_fields(head.fields),
                           .body = {},
                           .trailers = {}};
                break;
            }
            case http1::Event::body:
                message.body += parser.body();
                break;
            case http1::Event::end:
                message.trailers = copy_http1_fields(parser.trailers());
                messages.push_back(message);
                break;
        }
    }
}

/// Writes a message with chunks of up to `chunk_bytes`. Returns the failure, or nothing.
inline std::string write_http1(std::string& out, const Http1Message& message,
                               std::size_t chunk_bytes) {
    http1::HeadWriter head = message.status == 0
                                 ? http1::HeadWriter::request(out, message.method, message.target)
                                 : http1::HeadWriter::response(out, message.status);
    for (const auto& [name, value] : message.fields) head.field(name, value);
    if (message.framing == http1::BodyFraming::length) head.content_length(message.body.size());
    if (message.framing == http1::BodyFraming::chunked) head.chunked();
    if (message.framing == http1::BodyFraming::until_close) head.until_close();
    if (!head.finish()) return std::string(head.failure());
    if (message.framing != http1::BodyFraming::chunked) {
        out += message.body;
        return {};
    }
    for (std::size_t at = 0; at < message.body.size(); at += chunk_bytes) {
        http1::append_chunk(out, std::string_view(message.body).substr(at, chunk_bytes));
    }
    std::vector<http1::Field> trailers;
    for (const auto& [name, value] : message.trailers) trailers.push_back({name, value});
    return http1::append_last_chunk(out, trailers) ? "" : "invalid trailer";
}

}  // namespace polymux::testing
