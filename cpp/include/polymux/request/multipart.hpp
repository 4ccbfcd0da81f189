// A multipart/form-data body (RFC 7578) that is made while it is sent: nothing of a file is kept.
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

/// Where the bytes of one part come from. Used by one thread at a time.
class PartSource {
public:
    PartSource() = default;
    PartSource(const PartSource&) = delete;
    PartSource& operator=(const PartSource&) = delete;
    virtual ~PartSource() = default;

    /// Bytes from the start to the end, where that is known before they are read. The body gives
    /// exactly so many, or fails.
    [[nodiscard]] virtual std::optional<std::uint64_t> size_bytes() const noexcept = 0;

    /// Reads up to `buffer.size()` bytes; 0 is the end, or a wait where `starved()`.
    virtual Result<std::size_t> read(std::span<std::byte> buffer) = 0;

    /// True after a read that gave 0 because the next bytes are not there yet.
    [[nodiscard]] virtual bool starved() const noexcept { return false; }

    /// Called once all of `size_bytes()` have been read: fails where the source has changed since.
    virtual Result<void> check_unchanged() { return {}; }

    [[nodiscard]] virtual bool can_rewind() const noexcept = 0;
    /// Back to the start. Only where `can_rewind()`.
    virtual Result<void> rewind() = 0;

    /// For messages: a path, or what the caller calls it.
    [[nodiscard]] virtual const std::string& name() const noexcept = 0;
};

/// Bytes that somebody keeps unchanged for as long as the part lives; `owner` is dropped with it.
std::unique_ptr<PartSource> memory_part(std::span<const std::byte> bytes, std::string name,
                                        std::shared_ptr<const void> owner = {});

/// A regular file, read by `pread` straight into the buffer of whoever sends. Its size is that at
/// the opening; another size or modification time at the end is `input_changed`. A folder, pipe,
/// socket or device is `input_unreadable`.
Result<std::unique_ptr<PartSource>> file_part(const std::string& path);

/// The same of an open descriptor from `start_bytes` on; it is duplicated, its position unused.
Result<std::unique_ptr<PartSource>> descriptor_part(int descriptor, std::uint64_t start_bytes,
                                                    std::string name);

/// Bytes that one thread hands to another, which sends them: neither waits in here.
class Feed {
public:
    /// More bytes, at once or in any number of pieces. Without effect after `finish` or `fail`.
    void push(std::vector<std::byte> bytes);
    /// There is no more.
    void finish();
    /// The next read fails with this, once the bytes before it are read.
    void fail(Error error);
    /// Pushed and not yet read: the measure for whoever pushes of when to wait.
    [[nodiscard]] std::size_t waiting_bytes() const;

private:
    friend class FedPart;

    mutable std::mutex mutex_;
    std::deque<std::vector<std::byte>> pieces_;
    std::size_t offset_ = 0;  // In the first piece.
    std::size_t waiting_bytes_ = 0;
    bool ended_ = false;
    std::optional<Error> error_;
};

/// What `feed` is given; it cannot be rewound. `size_bytes` where it is known.
std::unique_ptr<PartSource> fed_part(std::shared_ptr<Feed> feed, std::string name,
                                     std::optional<std::uint64_t> size_bytes = {});

/// How a file part calls itself.
struct FileLabel {
    std::string file_name;          ///< Without folders; any language. Never empty on the wire.
    std::string content_type = {};  ///< Such as "audio/mpeg"; empty: by the file name's extension.
};

/// The type of a name's extension, in any case; "application/octet-stream" where it is not known.
[[nodiscard]] std::string_view content_type_of(std::string_view file_name);

/// A figure that one thread changes and others may look at meanwhile; by itself, as of some moment.
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

/// The body. Parts are added first, then it is read. Used by one thread at a time; others may ask
/// what is const meanwhile.
class MultipartBody {
public:
    /// With a boundary of 192 bits from the operating system, which no data can guess.
    static Result<MultipartBody> create();

    /// A field. `value` is UTF-8 and goes out byte for byte. Both must be valid UTF-8.
    Result<void> add_text(std::string_view name, std::string_view value);

    /// A file. In names, `"` and control characters become %22, %0A and so on, as browsers write
    /// them (WHATWG HTML, multipart/form-data encoding algorithm), and bytes of a file name that
    /// are no UTF-8 become U+FFFD; all else goes out as it is.
    Result<void> add_file(std::string_view name, const FileLabel& label,
                          std::unique_ptr<PartSource> source);

    /// For the header: "multipart/form-data; boundary=...".
    [[nodiscard]] const std::string& content_type() const noexcept { return content_type_; }

    /// Length of the whole body; none where a part does not know its own.
    [[nodiscard]] std::optional<std::uint64_t> length_bytes() const noexcept;

    /// Reads up to `buffer.size()` bytes; less than that is not the end. 0 is: either `finished()`
    /// or, where `starved()`, the current part waits for its feed. After a failure every read
    /// gives the same error, until `rewind`.
    Result<std::size_t> read(std::span<std::byte> buffer);

    [[nodiscard]] bool finished() const noexcept { return current_ == segments_.size(); }
    [[nodiscard]] bool starved() const noexcept { return starved_; }
    /// The file part that is being read, counted from 0 in the order they were added.
    [[nodiscard]] std::size_t current_file() const noexcept;
    /// Bytes that `read` has given since the start.
    [[nodiscard]] std::uint64_t sent_bytes() const noexcept { return sent_bytes_; }

    [[nodiscard]] bool can_rewind() const noexcept;
    /// Back to the start, to send the same body again. Fails where a part cannot.
    Result<void> rewind();

private:
    /// Bytes of our own, and the source that follows them; the last has none.
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
    std::vector<Segment> segments_;  // The last is always without a source: what ends the body.
    Watched<std::size_t> current_ = 0;
    std::size_t head_offset_ = 0;
    std::uint64_t source_bytes_ = 0;
    Watched<std::uint64_t> sent_bytes_ = 0;
    Watched<bool> starved_ = false;
    std::optional<Error> failure_;
};

}  // namespace polymux::request
