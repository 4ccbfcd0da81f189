// Server-sent events out of bytes that arrive in pieces of any size, as the WHATWG HTML standard
// reads them (https://html.spec.whatwg.org/multipage/server-sent-events.html).
//
//     SseSplitter splitter;
//     splitter.append(received);
//     SseEvent event;
//     while (splitter.next(event) == SseSplitter::Found::event) use(event.type, event.data);
//
// The work is linear in the bytes whatever the sizes of the pieces: no byte is searched twice for
// the end of its line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "polymux/stream/block.hpp"

namespace polymux::stream {

/// One event. The views are good until the next call of the splitter, `data` as long as somebody
/// holds `SseSplitter::block()`.
struct SseEvent {
    std::string_view data;  ///< The data lines, joined with LF.
    std::string_view type;  ///< Value of the last `event` line; empty where there was none.
    std::uint64_t offset_bytes =
        0;                    ///< Where `data` begins, in bytes from the beginning of the stream.
    bool single_line = true;  ///< `data` stands in the stream as it is.
};

struct SseOptions {
    /// Longest event, comments inside it included; by default what a client takes. At most 1 GiB.
    std::size_t max_event_bytes = std::size_t{16} << 20U;
    /// Reads a line `error: {...}` as `event: error` with that data. llama.cpp's server has
    /// reported failures so; the standard ignores a field of that name.
    bool error_field = false;
};

/// Not thread-safe. May throw std::bad_alloc and nothing else.
class SseSplitter {
public:
    enum class Found : std::uint8_t {
        event,
        nothing,   ///< More bytes are needed.
        too_long,  ///< An event passed the limit; there is no way on.
    };

    explicit SseSplitter(const SseOptions& options = {});

    /// Copies bytes in. They may end anywhere, inside a UTF-8 sequence too.
    void append(std::string_view bytes);

    /// The next whole event.
    Found next(SseEvent& event);

    /// What has arrived of the next event, and all behind it; empty while `next` has looked at a
    /// part of it. Zero bytes follow, at least `Block::padding_bytes` of them.
    std::string_view ahead();

    /// Passes over bytes of `ahead`: whole events that the caller has read by itself.
    void skip(std::size_t bytes) noexcept {
        event_begin_ = line_begin_ = scan_ = event_begin_ + bytes;
    }

    /// The data of an event whose blank line has not come; nothing where there is none. What is
    /// left at the end of a stream is no event, says the standard; but it tells how the stream
    /// broke off.
    std::string_view unfinished_data();

    /// What the bytes of the events at hand stand in.
    const BlockRef& block() const noexcept { return block_; }

    /// Position of the next event, in bytes from the beginning of the stream.
    std::uint64_t offset_bytes() const noexcept { return before_block_ + event_begin_; }
    /// Bytes appended so far.
    std::uint64_t total_bytes() const noexcept { return before_block_ + size_; }
    std::size_t max_event_bytes() const noexcept { return options_.max_event_bytes; }

    /// The last `id` of the stream; empty before the first one.
    const std::string& last_event_id() const noexcept { return last_event_id_; }
    /// The last `retry` of the stream.
    std::optional<std::uint64_t> retry_ms() const noexcept { return retry_ms_; }

private:
    void make_room(std::size_t bytes);
    bool settle();
    bool end_line(std::size_t line_end, SseEvent& event);
    void take_field(std::string_view name, std::string_view value);
    void join_data(std::string_view value);
    bool anything_pending() const noexcept { return has_data_ || !type_.empty(); }

    SseOptions options_;
    BlockRef block_;
    std::uint64_t before_block_ = 0;  // Bytes of the stream before the block's first.
    std::size_t size_ = 0;            // Bytes in the block.
    // Positions in the block, in this order: the event being read, its current line, and how far
    // that line has been searched for its end.
    std::size_t event_begin_ = 0;
    std::size_t line_begin_ = 0;
    std::size_t scan_ = 0;
    // Of the event being read, relative to its beginning.
    std::size_t data_begin_ = 0;
    std::size_t data_size_ = 0;
    bool has_data_ = false;
    bool single_line_ = true;
    bool after_cr_ = false;  // A line ended with CR: an LF right behind it belongs to that end.
    bool at_start_ = true;   // A byte order mark may still come.
    std::string type_;
    std::string type_handed_out_;
    std::string last_event_id_;
    std::optional<std::uint64_t> retry_ms_;
};

}  // namespace polymux::stream
