// One exchange with a server: a request and its response.
//
//     auto exchange = std::make_shared<transport::Exchange>(transport::Task{
//         .request = {.url = "https://server/api/v1/image2text", .body = std::move(body)}});
//     transport::Lease lease = ...;            // or IoThread::start
//     lease.start(exchange);
//     while (!exchange->ended()) lease.run(*exchange, 100ms);
//     use(exchange->outcome());
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "polymux/request/multipart.hpp"
#include "polymux/result.hpp"
#include "polymux/stream/chat_batch.hpp"
#include "polymux/stream/chat_decoder.hpp"

namespace polymux::transport {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Timeouts for the parts of an exchange. No value means no limit.
struct Deadlines {
    std::optional<milliseconds> connect = milliseconds{5000};  ///< Name lookup, TCP and TLS.
    std::optional<milliseconds> write = milliseconds{60000};   ///< While sending stalls.
    /// From the request's last byte to the first byte of the response; for a chat stream, to its
    /// first chunk.
    std::optional<milliseconds> first_byte = {};
    std::optional<milliseconds> idle = milliseconds{60000};  ///< Between two bytes of the response.
    /// Between two chunks of a chat stream. Keep-alive comments do not count.
    std::optional<milliseconds> event = {};
    std::optional<milliseconds> total = {};  ///< Over all attempts and the waits between them.
};

/// When to retry a request. Connection failures and statuses 429 and 503 are always retried. Other
/// failures, after which the server may have processed the request, are retried only if a
/// repetition is safe.
struct RetryPolicy {
    int max_retries = 2;
    milliseconds first_backoff{500};  ///< Doubles with each attempt; full jitter.
    milliseconds max_backoff{8000};
    milliseconds max_retry_after{120000};  ///< No retry if the server asks for a longer delay.
    /// True: a repetition is safe on any server.
    bool repeatable = false;
};

struct Request {
    std::string method = "POST";  ///< "POST", "GET" or "DELETE".
    std::string url;
    std::vector<std::string> headers = {};  ///< "Name: value"; the session's headers are added.
    std::variant<std::monostate, std::string, std::shared_ptr<request::MultipartBody>> body = {};
};

/// How to deliver the body of a successful response.
enum class ResponseMode : std::uint8_t {
    buffered,  ///< Collected; delivered with the outcome.
    chat,      ///< Decoded while it arrives.
    raw,       ///< Delivered while it arrives.
};

struct Task {
    Request request;
    ResponseMode response_mode = ResponseMode::buffered;
    Deadlines deadlines = {};
    RetryPolicy retries = {};
    stream::ChatDecoderOptions decoder = {};
    /// Maximum size of a collected body, in bytes.
    std::size_t max_answer_bytes = std::size_t{256} << 20U;
};

/// Status line and header fields of a response.
struct ResponseHead {
    int status = 0;
    int http_version = 11;  ///< 10, 11 or 20.
    std::string fields;     ///< "Name: value\r\n" each, as received.

    /// The first field with that name, in any case; empty if missing.
    [[nodiscard]] std::string_view field(std::string_view name) const noexcept;
    /// Whether several fields have that name with different values.
    [[nodiscard]] bool contradicts_itself(std::string_view name) const noexcept;
};

/// How an exchange ended.
struct Outcome {
    std::optional<Error> failure = {};
    std::shared_ptr<const ResponseHead> head = {};  ///< Head of the last response; may be null.
    /// Body of a collected response. For an unsuccessful status, its first bytes, up to 1 MiB.
    std::string body = {};
    unsigned tries = 1;
    std::vector<std::string> retry_reasons = {};  ///< See `Exchange::retry_reasons`.
    steady_clock::duration elapsed{};
};

class Mailbox;
class LoopNotifier;
class Transfer;

/// Shared by the consumer and the engine. All consumer functions are thread-safe, but only one
/// consumer may call `take`.
class Exchange : public std::enable_shared_from_this<Exchange> {
public:
    /// `notifier` receives news on an I/O thread. It is null if the consumer drives the engine.
    explicit Exchange(Task task, std::shared_ptr<LoopNotifier> notifier = {});
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
    ~Exchange();

    /// Requests the end, reported as `cancelled` unless the exchange ended before. Any thread.
    void cancel();
    /// Reports that the starved request body can be read again.
    void resume_sending();

    [[nodiscard]] bool ended() const noexcept { return ended_.load(std::memory_order_acquire); }
    /// True if `take` has something to return, the head has arrived, or the exchange has ended.
    [[nodiscard]] bool has_news() const noexcept {
        return news_.load(std::memory_order_acquire) || ended();
    }
    /// Head of a response that is being read or was read.
    [[nodiscard]] std::shared_ptr<const ResponseHead> head() const;
    /// For a response that is being read: the server or the caller stated that a repetition is
    /// safe.
    [[nodiscard]] bool repeatable() const;
    /// For each time that the request was sent again: why, and after which delay.
    [[nodiscard]] std::vector<std::string> retry_reasons() const;
    /// Swaps `batch`, which must be empty, with the received chunks.
    void take(stream::ChatBatch& batch);
    /// Swaps `bytes`, which must be empty, with the received bytes.
    void take(std::string& bytes);

    /// False in a forked child, which must not touch the exchange because it belongs to the parent.
    [[nodiscard]] bool of_this_process() const noexcept;
    /// Call only after the end.
    [[nodiscard]] const Outcome& outcome() const noexcept { return outcome_; }
    [[nodiscard]] const Task& task() const noexcept { return task_; }
    /// Body bytes passed to the connection in the current attempt.
    [[nodiscard]] std::uint64_t sent_bytes() const noexcept {
        return sent_bytes_.load(std::memory_order_relaxed);
    }

    /// True while the body is starved and waits for `resume_sending`.
    [[nodiscard]] bool starved() const noexcept { return starved_.load(std::memory_order_acquire); }
    /// Drops the request's body after the end, on a thread of the caller's choice.
    void release_body() { task_.request.body = std::monostate(); }

    /// For the consumer; the transport does not use it.
    std::atomic<void*> owner = nullptr;

private:
    friend class Engine;
    friend class Mailbox;
    friend class Transfer;
    friend class LoopNotifier;

    // The engine's side.
    void begin(std::shared_ptr<Mailbox> mailbox);
    void set_head(std::shared_ptr<const ResponseHead> head, bool repeatable);
    void add_retry(std::string reason);
    /// Returns false if the consumer is behind and the bytes must wait.
    bool add_bytes(std::string_view bytes);
    struct Decoded {
        bool taken = true;  ///< False as in `add_bytes`.
        bool chunks_came = false;
        stream::StreamState end = stream::StreamState::open;
    };
    Decoded decode(std::string_view bytes, stream::ChunkParser& parser);
    void finish_decoding(stream::ChunkParser& parser);
    void end(Outcome outcome);
    /// Marks the body as starved.
    void mark_starved();
    void notify();
    void on_taken();  // Call with the mutex held.

    Task task_;
    std::shared_ptr<LoopNotifier> notifier_;
    const unsigned process_;
    std::atomic<bool> ended_ = false;
    std::atomic<bool> news_ = false;
    std::atomic<bool> cancel_asked_ = false;
    std::atomic<bool> starved_ = false;
    std::atomic<std::uint64_t> sent_bytes_ = 0;
    bool queued_ = false;           // In the notifier's list; guarded by the notifier.
    Transfer* transfer_ = nullptr;  // The transfer that runs it; used only by the engine.

    mutable std::mutex mutex_;  // Guards all following members until the end.
    std::shared_ptr<Mailbox> mailbox_;
    std::shared_ptr<const ResponseHead> head_;
    std::vector<std::string> retry_reasons_;
    std::optional<stream::ChatDecoder> decoder_;
    stream::ChatBatch batch_;
    std::string bytes_;
    std::size_t undelivered_bytes_ = 0;
    bool paused_ = false;  // The engine waits for the consumer.
    bool repeatable_ = false;
    Outcome outcome_;
};

}  // namespace polymux::transport
