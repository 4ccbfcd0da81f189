// One exchange with a server: a request, and what comes of it.
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

/// How long each part of an exchange may take; without a value there is no limit.
struct Deadlines {
    std::optional<milliseconds> connect = milliseconds{5000};  ///< Name, connection and TLS.
    std::optional<milliseconds> write = milliseconds{60000};   ///< Without sending anything.
    /// From the request's last byte to the answer's first; of a chat stream, to its first chunk.
    std::optional<milliseconds> first_byte = {};
    std::optional<milliseconds> idle = milliseconds{60000};  ///< Between two bytes of the answer.
    /// Between two chunks of a chat stream: comments that keep a connection alive are none.
    std::optional<milliseconds> event = {};
    std::optional<milliseconds> total = {};  ///< Over all tries and the waiting between them.
};

/// When a request is sent again. Connections that failed and statuses 429 and 503 always count;
/// whatever else may have been worked on already counts only where a repetition does no harm.
struct RetryPolicy {
    int max_retries = 2;
    milliseconds first_backoff{500};  ///< Doubles with each try; full jitter.
    milliseconds max_backoff{8000};
    milliseconds max_retry_after{120000};  ///< A server that asks for more is not asked again.
    /// True: repetitions do no harm, whatever the server.
    bool repeatable = false;
};

struct Request {
    std::string method = "POST";  ///< "POST", "GET" or "DELETE".
    std::string url;
    std::vector<std::string> headers = {};  ///< "Name: value"; those of the session come with them.
    std::variant<std::monostate, std::string, std::shared_ptr<request::MultipartBody>> body = {};
};

/// What becomes of the body of a good answer.
enum class ResponseMode : std::uint8_t {
    buffered,  ///< Collected; handed over with the outcome.
    chat,      ///< Decoded as it comes.
    raw,       ///< Handed over as it comes.
};

struct Task {
    Request request;
    ResponseMode response_mode = ResponseMode::buffered;
    Deadlines deadlines = {};
    RetryPolicy retries = {};
    stream::ChatDecoderOptions decoder = {};
    /// Longest body that is collected, in bytes.
    std::size_t max_answer_bytes = std::size_t{256} << 20U;
};

/// Status line and header fields of an answer.
struct ResponseHead {
    int status = 0;
    int http_version = 11;  ///< 10, 11 or 20.
    std::string fields;     ///< "Name: value\r\n" each, as they came.

    /// The first field of that name, whatever its case; empty where there is none.
    [[nodiscard]] std::string_view field(std::string_view name) const noexcept;
    /// Whether there are several fields of that name that differ.
    [[nodiscard]] bool contradicts_itself(std::string_view name) const noexcept;
};

/// How an exchange ended.
struct Outcome {
    std::optional<Error> failure = {};
    std::shared_ptr<const ResponseHead> head = {};  ///< Of the last answer; may be null.
    /// Of a collected answer; of one whose status is no success, what came of it up to 1 MiB.
    std::string body = {};
    unsigned tries = 1;
    steady_clock::duration elapsed{};
};

class Mailbox;
class LoopNotifier;
class Transfer;

/// Shared by who asks and by the engine that works. What the consumer may do is thread-safe, but
/// one consumer takes.
class Exchange : public std::enable_shared_from_this<Exchange> {
public:
    /// `notifier`: who is told of news, on an I/O thread; null where the consumer drives the
    /// engine.
    explicit Exchange(Task task, std::shared_ptr<LoopNotifier> notifier = {});
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
    ~Exchange();

    /// Asks for the end, which comes as `cancelled` unless there was another before. Any thread.
    void cancel();
    /// Says that the request's body, which had run dry, can be read again.
    void resume_sending();

    [[nodiscard]] bool ended() const noexcept { return ended_.load(std::memory_order_acquire); }
    /// True where `take` would give something, the head has come, or the end.
    [[nodiscard]] bool has_news() const noexcept {
        return news_.load(std::memory_order_acquire) || ended();
    }
    /// Of an answer that is being read, or was.
    [[nodiscard]] std::shared_ptr<const ResponseHead> head() const;
    /// Of an answer that is being read: the server, or who asked, has said that the same request
    /// once more does no harm.
    [[nodiscard]] bool repeatable() const;
    /// Exchanges `batch`, which must be empty, for the chunks that have come.
    void take(stream::ChatBatch& batch);
    /// Exchanges `bytes`, which must be empty, for those of the answer that have come.
    void take(std::string& bytes);

    /// False in a child of a fork, where it must not be touched: it is the parent's.
    [[nodiscard]] bool of_this_process() const noexcept;
    /// Only once it has ended.
    [[nodiscard]] const Outcome& outcome() const noexcept { return outcome_; }
    [[nodiscard]] const Task& task() const noexcept { return task_; }
    /// Bytes of the body that were handed to the connection, in the current try.
    [[nodiscard]] std::uint64_t sent_bytes() const noexcept {
        return sent_bytes_.load(std::memory_order_relaxed);
    }

    /// True while the body has run dry, and `resume_sending` is waited for.
    [[nodiscard]] bool starved() const noexcept { return starved_.load(std::memory_order_acquire); }
    /// Drops the request's body, once it has ended: on the thread that its owner likes.
    void release_body() { task_.request.body = std::monostate(); }

    /// The consumer's own; the transport never looks at it.
    std::atomic<void*> owner = nullptr;

private:
    friend class Engine;
    friend class Mailbox;
    friend class Transfer;
    friend class LoopNotifier;

    // The engine's side.
    void begin(std::shared_ptr<Mailbox> mailbox);
    void set_head(std::shared_ptr<const ResponseHead> head, bool repeatable);
    /// False where the consumer has enough to do and the bytes must wait.
    bool add_bytes(std::string_view bytes);
    struct Decoded {
        bool taken = true;  ///< False as of `add_bytes`.
        bool chunks_came = false;
        stream::StreamState end = stream::StreamState::open;
    };
    Decoded decode(std::string_view bytes, stream::ChunkParser& parser);
    void finish_decoding(stream::ChunkParser& parser);
    void end(Outcome outcome);
    /// The body has run dry.
    void mark_starved();
    void notify();
    void on_taken();  // With the mutex.

    Task task_;
    std::shared_ptr<LoopNotifier> notifier_;
    const unsigned process_;
    std::atomic<bool> ended_ = false;
    std::atomic<bool> news_ = false;
    std::atomic<bool> cancel_asked_ = false;
    std::atomic<bool> starved_ = false;
    std::atomic<std::uint64_t> sent_bytes_ = 0;
    bool queued_ = false;           // On the notifier's list; guarded by the notifier.
    Transfer* transfer_ = nullptr;  // What works on it; the engine's alone.

    mutable std::mutex mutex_;  // For all that follows, until the end.
    std::shared_ptr<Mailbox> mailbox_;
    std::shared_ptr<const ResponseHead> head_;
    std::optional<stream::ChatDecoder> decoder_;
    stream::ChatBatch batch_;
    std::string bytes_;
    std::size_t undelivered_bytes_ = 0;
    bool paused_ = false;  // The engine waits for the consumer.
    bool repeatable_ = false;
    Outcome outcome_;
};

}  // namespace polymux::transport
