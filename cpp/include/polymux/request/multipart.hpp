// A multipart/form-data body (RFC 7578), built while it is sent: files are not held in memory.
//
//     auto body = request::MultipartBody::create();
//     if (!body) return body.error();
//     auto added = body->add_text("task", "transcribe");
//     auto talk = request::file_part("talk.mp4");
//     if (!talk) return talk.error();
//     added = body->add_file("audio", {.file_name = "talk.mp4"}, *std::move(talk));
//     while (!body->finished()) { auto count = body->read(buffer); ... }
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/result.hpp"

namespace polymux::request {

/// Source of the bytes of one part. Used by one thread at a time.
class PartSource {
public:
    PartSource() = default;
    PartSource(const PartSource&) = delete;
    PartSource& operator=(const PartSource&) = delete;
    virtual ~PartSource() = default;

    /// Size in bytes from start to end, if known before reading. The body sends exactly this many
    /// bytes, or fails.
    [[nodiscard]] virtual std::optional<std::uint64_t> size_bytes() const noexcept = 0;

    /// Reads up to `buffer.size()` bytes; 0 means the end, or a wait if `starved()`.
    virtual Result<std::size_t> read(std::span<std::byte> buffer) = 0;

    /// True after a read returned 0 because the next bytes have not arrived yet.
    [[nodiscard]] virtual bool starved() const noexcept { return false; }

    /// Called once after all of `size_bytes()` was read. Fails if the source has changed since.
    virtual Result<void> check_unchanged() { return {}; }

    [[nodiscard]] virtual bool can_rewind() const noexcept = 0;
    /// Returns to the start. Only called if `can_rewind()`.
    virtual Result<void> rewind() = 0;

    /// For messages: a path, or the caller's name for it.
    [[nodiscard]] virtual const std::string& name() const noexcept = 0;
};

/// Bytes that stay unchanged for as long as the part lives. `owner` keeps them alive and is dropped
/// with the part.
std::unique_ptr<PartSource> memory_part(std::span<const std::byte> bytes, std::string name,
                                        std::shared_ptr<const void> owner = {});

/// A regular file, read by `pread` straight into the sender's buffer. Its size is fixed at opening;
/// a different size or modification time at the end is `input_changed`. A folder, pipe, socket or
/// device is `input_unreadable`.
Result<std::unique_ptr<PartSource>> file_part(const std::string& path);

/// The same for an open descriptor, starting at `start_bytes`. The descriptor is duplicated; its
/// position is not used.
Result<std::unique_ptr<PartSource>> descriptor_part(int descriptor, std::uint64_t start_bytes,
                                                    std::string name);

/// Bytes that one thread passes to another thread, which sends them. Neither thread waits here.
class Feed {
public:
    /// Adds bytes. No effect after `finish` or `fail`.
    void push(std::vector<std::byte> bytes);
    /// Marks the end of the bytes.
    void finish();
    /// Makes the next read fail with `error`, after the bytes before it are read.
    void fail(Error error);
    /// Bytes pushed but not read. The pushing thread uses it to decide when to wait.
    [[nodiscard]] std::size_t waiting_bytes() const;

private:
    friend class FedPart;

    mutable std::mutex mutex_;
    std::deque<std::vector<std::byte>> pieces_;
    std::size_t offset_ = 0;  // Position in the first piece.
    std::size_t waiting_bytes_ = 0;
    bool ended_ = false;
    std::optional<Error> error_;
};

/// A part that reads from `feed`; it cannot be rewound. `size_bytes` is the size, if known.
std::unique_ptr<PartSource> fed_part(std::shared_ptr<Feed> feed, std::string name,
                                     std::optional<std::uint64_t> size_bytes = {});

/// File name and type of a file part.
struct FileLabel {
    std::string file_name;          ///< Without folders; any language. Never empty on the wire.
    std::string content_type = {};  ///< "audio/mpeg", ...; empty: by file extension.
};

/// Content type for a name's extension, in any case; "application/octet-stream" if unknown.
[[nodiscard]] std::string_view content_type_of(std::string_view file_name);

/// A number that one thread changes while other threads may read it. Each read is a snapshot.
template <typename T>
class Watched {
public:
    Watched(T value) noexcept : value_(value) {}  // NOLINT(google-explicit-constructor): a number.
    Watched(const Watched& other) noexcept : value_(T(other)) {}
    Watched& operator=(const Watched& other) noexcept { return *this = T(other); }
    Watched& operator=(T value) noexcept {
        value_.store(value, std::memory_order_relaxed);
        return *this;
    }
    Watched& operator+=(T more) noexcept { return *this = T(*this) + more; }
    // NOLINTNEXTLINE(google-explicit-constructor): a number.
    operator T() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<T> value_;
};

/// The body. Add the parts first, then read it. Used by one thread at a time; other threads may
/// call the const functions meanwhile.
class MultipartBody {
public:
    /// Creates a body with a boundary of 192 random bits from the operating system, which data
    /// cannot predict.
    static Result<MultipartBody> create();

    /// Adds a field. Both texts must be valid UTF-8; `value` is sent byte for byte.
    Result<void> add_text(std::string_view name, std::string_view value);

    /// Adds a file. In names, `"` and control characters become %22, %0A and so on, as in browsers
    /// (WHATWG HTML, multipart/form-data encoding algorithm). Invalid UTF-8 in a file name becomes
    /// U+FFFD. Everything else is sent unchanged.
    Result<void> add_file(std::string_view name, const FileLabel& label,
                          std::unique_ptr<PartSource> source);

    /// For the header: "multipart/form-data; boundary=...".
    [[nodiscard]] const std::string& content_type() const noexcept { return content_type_; }

    /// Length of the whole body; none if a part does not know its length.
    [[nodiscard]] std::optional<std::uint64_t> length_bytes() const noexcept;

    /// Reads up to `buffer.size()` bytes; a short read is not the end. Returns 0 if `finished()`,
    /// or if `starved()`: the current part waits for its feed. After a failure, every read returns
    /// the same error until `rewind`.
    Result<std::size_t> read(std::span<std::byte> buffer);

    [[nodiscard]] bool finished() const noexcept { return current_ == segments_.size(); }
    [[nodiscard]] bool starved() const noexcept { return starved_; }
    /// Index of the file part that is being read, counted from 0 in the order of addition.
    [[nodiscard]] std::size_t current_file() const noexcept;
    /// Bytes returned by `read` since the start.
    [[nodiscard]] std::uint64_t sent_bytes() const noexcept { return sent_bytes_; }

    [[nodiscard]] bool can_rewind() const noexcept;
    /// Returns to the start, to send the same body again. Fails if a part cannot be rewound.
    Result<void> rewind();

private:
    /// Generated bytes, followed by a part's source. The last segment has no source.
    struct Segment {
        std::string head;
        std::unique_ptr<PartSource> source;
    };

    explicit MultipartBody(std::string boundary);

    std::size_t read_head(std::span<std::byte> buffer) noexcept;
    Result<std::size_t> read_source(std::span<std::byte> buffer);
    Result<std::size_t> read_pieces(std::span<std::byte> buffer);
    void next_segment() noexcept;

    std::string boundary_;
    std::string content_type_;
    std::vector<Segment> segments_;  // The last one has the body's end.
    Watched<std::size_t> current_ = 0;
    std::size_t head_offset_ = 0;
    std::uint64_t source_bytes_ = 0;
    Watched<std::uint64_t> sent_bytes_ = 0;
    Watched<bool> starved_ = false;
    std::optional<Error> failure_;
};

}  // namespace polymux::request
