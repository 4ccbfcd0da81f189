#include "polymux/stream/sse.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "stream/scan.hpp"

namespace polymux::stream {

namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
// A quiet stream needs little memory; a busy one is read in large steps.
constexpr std::size_t smallest_block_bytes = std::size_t{4} << 10U;
constexpr std::size_t usual_block_bytes = std::size_t{64} << 10U;
constexpr std::size_t steps_per_block = 4;
constexpr std::size_t largest_limit_bytes = std::size_t{1} << 30U;

}  // namespace

SseSplitter::SseSplitter(const SseOptions& options) : options_(options) {
    options_.max_event_bytes = std::min(options_.max_event_bytes, largest_limit_bytes);
}

void SseSplitter::append(std::string_view bytes) {
    if (bytes.empty()) return;
    make_room(bytes.size());
    char* const end = block_->data() + size_;
    std::memcpy(end, bytes.data(), bytes.size());
    std::memset(end + bytes.size(), 0, Block::padding_bytes);
    size_ += bytes.size();
}

/// Makes room after the current bytes. Drops the bytes before the current event: in place if no
/// reader holds the block, otherwise by moving to another block. An event is moved only if at least
/// as many bytes have arrived since its last move.
void SseSplitter::make_room(std::size_t bytes) {
    const std::size_t kept = size_ - event_begin_;
    const bool writable = block_ && block_.unique();
    const bool fits = block_ && block_->capacity_bytes() - size_ >= bytes;
    if (fits && !(writable && kept == 0)) return;
    if (!(writable && kept <= block_->capacity_bytes() / 2 &&
          block_->capacity_bytes() - kept >= bytes)) {
        const std::size_t wanted = std::max(2 * kept + bytes, steps_per_block * bytes);
        BlockRef larger =
            BlockRef::make(std::max({kept + bytes, smallest_block_bytes,
                                     kept > 0 ? wanted : std::min(wanted, usual_block_bytes)}));
        if (kept > 0) std::memcpy(larger->data(), block_->data() + event_begin_, kept);
        block_ = std::move(larger);
    } else if (kept > 0) {
        std::memmove(block_->data(), block_->data() + event_begin_, kept);
    }
    before_block_ += event_begin_;
    line_begin_ -= event_begin_;
    scan_ -= event_begin_;
    size_ = kept;
    event_begin_ = 0;
}

/// Skips a byte order mark and the LF of a split CRLF. Returns false if more bytes are needed to
/// decide.
bool SseSplitter::settle() {
    if (at_start_) {
        const std::string_view head =
            block_ ? std::string_view(block_->data(), size_) : std::string_view();
        if (head.size() < byte_order_mark.size() && byte_order_mark.starts_with(head)) return false;
        if (head.starts_with(byte_order_mark)) skip(byte_order_mark.size());
        at_start_ = false;
    }
    if (after_cr_) {
        if (line_begin_ == size_) return false;
        after_cr_ = false;
        if (block_->data()[line_begin_] == '\n') {
            ++line_begin_;
            scan_ = line_begin_;
            if (!anything_pending()) event_begin_ = line_begin_;
        }
    }
    return true;
}

std::string_view SseSplitter::ahead() {
    if (!settle() || line_begin_ != event_begin_ || scan_ != line_begin_ || anything_pending())
        return {};
    return {block_->data() + event_begin_, size_ - event_begin_};
}

std::string_view SseSplitter::unfinished_data() {
    if (!block_ || at_start_) return {};
    // A last line without a line end counts here.
    const std::string_view line(block_->data() + line_begin_, size_ - line_begin_);
    if (!has_data_ && line.starts_with("data:"))
        return line.substr(line.starts_with("data: ") ? 6 : 5);
    if (!has_data_) return {};
    return {block_->data() + event_begin_ + data_begin_, data_size_};
}

SseSplitter::Found SseSplitter::next(SseEvent& event) {
    while (settle()) {
        const char* const bytes = block_->data();
        const char* const end = bytes + size_;
        const char* const found = find_line_end(bytes + scan_, end);
        const auto line_end = static_cast<std::size_t>(found - bytes);
        if (line_end - event_begin_ > options_.max_event_bytes) return Found::too_long;
        if (found == end) {
            scan_ = size_;
            return Found::nothing;
        }
        if (end_line(line_end, event)) return Found::event;
    }
    return Found::nothing;
}

/// Reads the line that ends there. Returns true if it was the blank line after an event.
bool SseSplitter::end_line(std::size_t line_end, SseEvent& event) {
    const char* const bytes = block_->data();
    const std::string_view line(bytes + line_begin_, line_end - line_begin_);
    const bool cr = bytes[line_end] == '\r';
    const std::size_t colon = line.find(':');
    if (line.empty()) {
        type_handed_out_.swap(type_);
        event = {.data = {bytes + event_begin_ + data_begin_, data_size_},
                 .type = type_handed_out_,
                 .offset_bytes = before_block_ + event_begin_ + data_begin_,
                 .single_line = single_line_};
    } else if (colon == std::string_view::npos) {
        take_field(line, line.substr(line.size()));
    } else if (colon > 0) {  // A line that begins with a colon is a comment.
        std::string_view value = line.substr(colon + 1);
        if (value.starts_with(' ')) value.remove_prefix(1);
        take_field(line.substr(0, colon), value);
    }
    // Consume a complete CRLF at once, so the caller sees the start of the next event.
    const bool crlf = cr && line_end + 1 < size_ && bytes[line_end + 1] == '\n';
    after_cr_ = cr && !crlf;
    line_begin_ = line_end + (crlf ? 2 : 1);
    scan_ = line_begin_;
    const bool whole = line.empty() && has_data_;
    if (line.empty()) {
        has_data_ = false;
        single_line_ = true;
        data_size_ = 0;
        type_.clear();
    }
    if (!anything_pending()) event_begin_ = line_begin_;
    return whole;
}

void SseSplitter::take_field(std::string_view name, std::string_view value) {
    if (name == "data") {
        join_data(value);
    } else if (name == "event") {
        type_ = value;
    } else if (name == "id") {
        if (value.find('\0') == std::string_view::npos) last_event_id_ = value;
    } else if (name == "retry" && !value.empty() &&
               value.find_first_not_of("0123456789") == std::string_view::npos) {
        std::uint64_t wait_ms = 0;
        const auto read = std::from_chars(value.data(), value.data() + value.size(), wait_ms);
        if (read.ec == std::errc()) retry_ms_ = wait_ms;
    } else if (name == "error" && options_.error_field && value.starts_with('{')) {
        type_ = name;
        join_data(value);
    }
}

/// Moves later lines up to the first, over the field name between them, which is never shorter than
/// the replacing LF.
void SseSplitter::join_data(std::string_view value) {
    char* const event = block_->data() + event_begin_;
    if (!has_data_) {
        has_data_ = true;
        data_begin_ = static_cast<std::size_t>(value.data() - event);
        data_size_ = value.size();
        return;
    }
    char* const end = event + data_begin_ + data_size_;
    *end = '\n';
    std::memmove(end + 1, value.data(), value.size());
    data_size_ += value.size() + 1;
    single_line_ = false;
}

}  // namespace polymux::stream
