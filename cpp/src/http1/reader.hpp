// llhttp as the second reader of a message. It gets whole lines, so that its callbacks see whole
// tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// Before llhttp.h.
#include "polymux_names.h"

#include "llhttp.h"
#include "polymux/http1/parser.hpp"

namespace polymux::http1::detail {

/// Facts about a message that llhttp has reported.
struct Seen {
    std::string_view method;
    std::string_view target;
    // These belong to the bytes of the last `feed`.
    std::string_view name;
    std::string_view value;
    std::string_view body;
    std::uint64_t content_length_bytes = 0;
    std::uint64_t chunk_bytes = 0;  // The size in the last chunk line.
    std::uint16_t status = 0;
    std::uint8_t minor_version = 0;
    bool has_length = false;
    bool is_chunked = false;
    bool has_transfer_encoding = false;
    bool head_complete = false;
    bool complete = false;
};

class Reader {
public:
    explicit Reader(MessageKind kind);
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    void start_message();
    /// Before the empty line after the fields: the message has no body, whatever its fields say.
    void skip_body() noexcept { skips_body_ = true; }
    /// False: llhttp rejects the bytes.
    bool feed(std::string_view bytes);
    /// The connection was closed. False: llhttp expects more.
    bool finish();
    [[nodiscard]] const Seen& seen() const noexcept { return seen_; }

    // Called by llhttp.
    [[nodiscard]] Seen& of_callbacks() noexcept { return seen_; }
    [[nodiscard]] bool skips_body() const noexcept { return skips_body_; }

private:
    llhttp_t state_ = {};
    Seen seen_;
    bool skips_body_ = false;
};

}  // namespace polymux::http1::detail
