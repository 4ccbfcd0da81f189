// Splits bytes that arrive in pieces of any size into server-sent events, as in the WHATWG HTML
// standard (https://html.spec.whatwg.org/multipage/server-sent-events.html).
//
//     SseSplitter splitter;
//     splitter.append(received);
//     SseEvent event;
//     while (splitter.next(event) == SseSplitter::Found::event) use(event.type, event.data);
//
// The work is linear in the bytes for pieces of any size: no byte is searched twice for the end of
// its line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "polymux/stream/block.hpp"

namespace polymux::stream {

/// One event. The views are valid until the next call of the splitter. `data` stays valid while
/// `SseSplitter::block()` is held.
struct SseEvent {
    std::string_view data;           ///< The data lines, joined with LF.
    std::string_view type;           ///< Value of the last `event` line; empty if missing.
    std::uint64_t offset_bytes = 0;  ///< Start of `data`, in bytes from the start of the stream.
    bool single_line = true;         ///< `data` appears unchanged in the stream.
};

struct SseOptions {
    /// Maximum size of an event, including comments inside it. The default is the client's limit.
    /// At most 1 GiB.
    std::size_t max_event_bytes = std::size_t{16} << 20U;
    /// Reads a line `error: {...}` as `event: error` with that data. llama.cpp's server has
    /// reported failures in this form; the standard ignores a field with that name.
    bool error_field = false;
};

/// Not thread-safe. May throw std::bad_alloc and nothing else.
class SseSplitter {
public:
    enum class Found : std::uint8_t {
        event,
        nothing,   ///< More bytes are needed.
        too_long,  ///< An event exceeded the limit; the stream cannot continue.
    };

    explicit SseSplitter(const SseOptions& options = {});

    /// Copies bytes in. They may end anywhere, even inside a UTF-8 sequence.
    void append(std::string_view bytes);

    Found next(SseEvent& event);

    /// Received bytes from the start of the next event. Empty while `next` has read only a part of
    /// that event. At least `Block::padding_bytes` zero bytes follow.
    std::string_view ahead();

    /// Skips bytes of `ahead`: whole events that the caller parsed itself.
    void skip(std::size_t bytes) noexcept {
        event_begin_ = line_begin_ = scan_ = event_begin_ + bytes;
    }

    /// The data of an event whose blank line has not arrived; nothing if there is no such event. By
    /// the standard, data left at the end of a stream is not an event, but it shows how the stream
    /// was cut off.
    std::string_view unfinished_data();

    /// The block that holds the bytes of the current events.
    const BlockRef& block() const noexcept { return block_; }

    /// Position of the next event, in bytes from the start of the stream.
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
    std::uint64_t before_block_ = 0;  // Bytes of the stream before the block's first byte.
    std::size_t size_ = 0;            // Bytes in the block.
    // Positions in the block, in ascending order: the event being read, its current line, and how
    // far that line has been searched for its end.
    std::size_t event_begin_ = 0;
    std::size_t line_begin_ = 0;
    std::size_t scan_ = 0;
    // Positions in the event being read, relative to its start.
    std::size_t data_begin_ = 0;
    std::size_t data_size_ = 0;
    bool has_data_ = false;
    bool single_line_ = true;
    bool after_cr_ = false;  // A line ended with CR; an LF right after it belongs to that line end.
    bool at_start_ = true;   // A byte order mark may still come.
    std::string type_;
    std::string type_handed_out_;
    std::string last_event_id_;
    std::optional<std::uint64_t> retry_ms_;
};

}  // namespace polymux::stream
