// Writes HTTP/1.1 heads and chunks (RFC 9112) at the end of a buffer.
//
//     std::string out;
//     http1::HeadWriter head = http1::HeadWriter::response(out, 200);
//     head.field("Date", http1::http_date(now_s).text()).field("Content-Type", "text/plain");
//     head.chunked();
//     if (!head.finish()) return head.failure();
//     http1::append_chunk(out, "hello");
//     http1::append_last_chunk(out);
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "polymux/http1/message.hpp"

namespace polymux::http1 {

/// Writes one head. Names and values are checked, so that none can add a field or end the head.
class HeadWriter {
public:
    /// `out` must live as long as the writer, and must not change before `finish`.
    static HeadWriter request(std::string& out, std::string_view method, std::string_view target);
    /// `status` is 100 to 999. The reason is that of RFC 9110, or empty for other statuses.
    static HeadWriter response(std::string& out, int status);

    /// Adds a field. Spaces and tabs around the value are not written. Content-Length and
    /// Transfer-Encoding have their own functions.
    HeadWriter& field(std::string_view name, std::string_view value);

    // The framing of the body: one of these for a response with a body, at most one otherwise.
    HeadWriter& content_length(std::uint64_t bytes);
    HeadWriter& chunked();
    /// For a response to an HTTP/1.0 client: the body ends with the connection. Adds
    /// "Connection: close".
    HeadWriter& until_close();

    /// Adds "Connection: close", once.
    HeadWriter& close();

    /// Ends the head. False: something was invalid or missing, and `out` is as it was before.
    [[nodiscard]] bool finish();
    /// The first problem: "invalid field value"; empty if there is none.
    [[nodiscard]] std::string_view failure() const noexcept { return failure_; }

private:
    explicit HeadWriter(std::string& out) noexcept : out_(&out), begin_(out.size()) {}
    void fail(std::string_view problem) noexcept;
    void set_framing(BodyFraming framing) noexcept;
    void append_field(std::string_view name, std::string_view value);

    std::string* out_;
    std::size_t begin_;
    std::string_view failure_;
    int status_ = 0;  // 0 for a request.
    bool has_host_ = false;
    bool says_close_ = false;
    BodyFraming framing_ = BodyFraming::none;
};

/// Adds a chunk. Empty data adds nothing, because an empty chunk would end the body.
void append_chunk(std::string& out, std::string_view data);

/// Adds the last chunk and the trailers. False: a trailer is invalid, and nothing was added.
[[nodiscard]] bool append_last_chunk(std::string& out, std::span<const Field> trailers = {});

/// A chunk around bytes that are not copied.
class ChunkPieces {
public:
    /// `data` must live as long as the pieces, and must not be empty.
    explicit ChunkPieces(std::string_view data) noexcept;

    /// The size line, the data and the line end, for `writev`.
    [[nodiscard]] std::array<iovec, 3> pieces() const noexcept;

private:
    std::array<char, 18> size_line_;  // 16 digits and CRLF.
    std::size_t size_line_bytes_ = 0;
    std::string_view data_;
};

/// "Sun, 06 Nov 1994 08:49:37 GMT"
struct DateText {
    std::array<char, 29> bytes;
    [[nodiscard]] std::string_view text() const noexcept { return {bytes.data(), bytes.size()}; }
};

/// The value of a Date field. `unix_s` is in the years 1970 to 9999. A server calls this once per
/// second.
[[nodiscard]] DateText http_date(std::int64_t unix_s) noexcept;

}  // namespace polymux::http1
