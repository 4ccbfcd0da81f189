// Incremental parser of HTTP/1.1 messages (RFC 9112), for servers and clients.
//
//     http1::Parser parser(http1::MessageKind::request, limits);
//     std::string_view input = received;
//     for (;;) {
//         switch (parser.next(input)) {
//             case http1::Event::need_input: ...  // Input is empty now: read more.
//             case http1::Event::head: use(parser.head()); break;
//             case http1::Event::body: use(parser.body()); break;
//             case http1::Event::end: use(parser.trailers()); break;
//             case http1::Event::refused: answer(status_of(parser.refusal())); return;
//         }
//     }
//
// Two readers must agree on every message: llhttp, strict and without lenient flags, and polymux's
// rules, which also reject what implementations read in different ways. A message gives the same
// events and the same refusal for any division into inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/http1/message.hpp"
#include "polymux/http1/refusal.hpp"

namespace polymux::http1 {

/// Each size is at most 1 GiB, except `max_body_bytes`.
struct Limits {
    /// The request or status line, without its line end.
    std::size_t max_start_line_bytes = std::size_t{16} << 10U;
    /// One field line or trailer, without its line end.
    std::size_t max_field_bytes = std::size_t{32} << 10U;
    std::size_t max_fields = 200;
    /// All field lines with their line ends, and the empty line.
    std::size_t max_fields_bytes = std::size_t{64} << 10U;
    /// The default of `Parser::limit_body`.
    std::uint64_t max_body_bytes = std::numeric_limits<std::int64_t>::max();
    /// All chunk extensions of a body, with their semicolons.
    std::size_t max_chunk_extension_bytes = std::size_t{4} << 10U;
    std::size_t max_trailers = 32;
    /// All trailers with their line ends, and the empty line.
    std::size_t max_trailers_bytes = std::size_t{8} << 10U;
};

enum class MessageKind : std::uint8_t { request, response };

enum class Event : std::uint8_t {
    need_input,  ///< All input is used up.
    head,        ///< `head()` is complete.
    body,        ///< `body()` has the next bytes of the body, without chunk framing.
    end,         ///< The message is complete.
    refused,     ///< `refusal()` says why. Final: the connection must be closed.
};

namespace detail {

class Reader;  // llhttp.

/// Collects the lines of one section: a head, a chunk line or the trailers. The bytes stay in the
/// input as long as the section does not continue in another one; then they are copied.
class LineSection {
public:
    struct Bounds {
        std::size_t max_line_bytes;
        Refusal line_refusal;
        std::size_t max_section_bytes;
        Refusal section_refusal;
    };

    void start() noexcept;
    /// Reads from `input` to the end of the next line. True: `line()` is complete. False: there is
    /// a refusal, or all input is used up.
    bool read(std::string_view& input, const Bounds& bounds, Refusal& refusal);
    /// The complete line, without CRLF.
    [[nodiscard]] std::string_view line() const noexcept {
        return {begin() + line_begin_, size_ - 2 - line_begin_};
    }
    /// The complete line with CRLF.
    [[nodiscard]] std::string_view line_with_end() const noexcept {
        return {begin() + line_begin_, size_ - line_begin_};
    }
    [[nodiscard]] const char* begin() const noexcept { return is_copy_ ? copy_.data() : input_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    /// Position of the complete line.
    [[nodiscard]] std::size_t line_begin() const noexcept { return line_begin_; }
    [[nodiscard]] std::size_t memory_bytes() const noexcept { return copy_.capacity(); }
    /// Copies the bytes, unless they are copied already.
    void keep();
    void release() noexcept;

private:
    const char* input_ = nullptr;
    std::string copy_;
    std::size_t size_ = 0;
    std::size_t line_begin_ = 0;
    bool is_copy_ = false;
    bool line_complete_ = true;
};

/// Parts of a head; the views of `MessageHead` are made of them.
struct HeadRanges {
    TextRange method;
    TextRange target;
    TextRange path;
    TextRange authority;
    TextRange reason;
};

/// Facts about a message from its start line and its fields.
struct HeadFacts {
    HeadRanges ranges;
    TargetForm target_form = TargetForm::origin;
    std::uint16_t status = 0;
    std::uint8_t minor_version = 1;
    bool has_host = false;
    bool has_length = false;
    bool is_chunked = false;
    bool expects_continue = false;
    bool says_close = false;
    bool says_keep_alive = false;
    std::uint64_t content_length_bytes = 0;
};

}  // namespace detail

/// The parser of one connection. It is reset by itself after each message. Not thread-safe. May
/// throw std::bad_alloc and nothing else.
class Parser {
public:
    /// `limits` must live as long as the parser.
    Parser(MessageKind kind, const Limits& limits);
    Parser(MessageKind kind, Limits&& limits) = delete;
    Parser(Parser&&) noexcept;
    Parser& operator=(Parser&&) noexcept;
    ~Parser();

    /// Reads up to the next event, and removes the bytes that it used from `input`. After the `end`
    /// of a message with `keep_alive`, the next call reads the next message; without it, all
    /// further input is dropped.
    Event next(std::string_view& input);

    /// The peer has closed its side. Returns `end` for a response that ends here, `refused` inside
    /// a message, otherwise `need_input`.
    Event finish();

    /// The current message, from `head` to `end`. The views point into the input of the call that
    /// returned `head`, or into the parser if the head came in several pieces. Call `keep_head` to
    /// use them after that input has changed; then they are valid until the `next` call after
    /// `end`.
    [[nodiscard]] const MessageHead& head() const noexcept { return head_; }
    /// After `head`: copies its bytes into the parser, in one allocation, unless they are there.
    void keep_head();

    /// After `body`: a view into that input.
    [[nodiscard]] std::string_view body() const noexcept { return body_; }
    /// After `end`: the trailers of a chunked body. Valid until the next call, and as long as the
    /// input.
    [[nodiscard]] FieldList trailers() const noexcept { return {tail_.begin(), trailers_}; }
    /// After `refused`.
    [[nodiscard]] Refusal refusal() const noexcept { return refusal_; }

    /// Sets the maximum body size of the current message, after `head`. False: the declared size is
    /// larger, and the message is refused. A chunked body is refused at the chunk that exceeds it.
    bool limit_body(std::uint64_t max_body_bytes) noexcept;

    /// For responses, before each one: whether it answers a HEAD request, and has no body.
    void expect_response(bool to_head_request) noexcept { to_head_request_ = to_head_request; }

    /// No byte of a message has arrived since the last `end`.
    [[nodiscard]] bool idle() const noexcept {
        return (phase_ == Phase::start && section_.empty()) || phase_ == Phase::ended;
    }
    /// Accepts an empty line before the next message, as on a new connection. Only if `idle`.
    void forget_empty_line() noexcept { skipped_empty_line_ = false; }
    /// Memory of the parser and what it owns.
    [[nodiscard]] std::size_t memory_bytes() const noexcept;

private:
    static constexpr std::size_t max_chunk_digits = 16;

    enum class Phase : std::uint8_t {
        start,
        fields,
        after_head,
        body,
        chunk_line,
        chunk,
        chunk_end,
        trailers,
        complete,  // `end` is the next event.
        ended,
        closed,  // Further input is dropped.
        refused,
    };

    void begin_message() noexcept;
    Event refuse(Refusal refusal) noexcept;
    /// Refuses, or needs input.
    Event stop(Refusal refusal) noexcept;
    Refusal read_start_line();
    Refusal read_field();
    Refusal finish_head();
    Refusal read_chunk_line();
    Refusal read_trailer();
    Refusal read_body(std::string_view& input);
    bool read_chunk_end(std::string_view& input, Refusal& refusal);
    bool second_reader_agrees(std::string_view line_with_end, const Field& field);
    void begin_body() noexcept;
    Event end_message() noexcept;
    void point_head_at(const char* begin) noexcept;

    const Limits* limits_;
    MessageKind kind_;
    Phase phase_ = Phase::start;
    Refusal refusal_ = Refusal::none;
    bool to_head_request_ = false;
    bool skipped_empty_line_ = false;
    std::uint8_t chunk_end_bytes_ = 0;
    detail::HeadFacts facts_;
    std::size_t start_line_bytes_ = 0;
    std::size_t extension_bytes_ = 0;
    std::uint64_t max_body_bytes_ = 0;
    std::uint64_t body_bytes_ = 0;  // Announced so far.
    std::uint64_t left_bytes_ = 0;  // Rest of the body or chunk.
    detail::LineSection section_;   // The head.
    detail::LineSection tail_;      // A chunk line, or the trailers.
    std::vector<FieldPosition> fields_;
    std::vector<FieldPosition> trailers_;
    MessageHead head_;
    std::string_view body_;
    std::unique_ptr<detail::Reader> reader_;
};

}  // namespace polymux::http1
