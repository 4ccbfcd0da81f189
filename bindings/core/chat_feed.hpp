// What both kinds of chat streams do alike: bytes in, chunk objects out, the account of the answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "chat_chunk.hpp"
#include "interpreter.hpp"
#include "polymux/result.hpp"
#include "polymux/stream/chat_batch.hpp"
#include "polymux/stream/chat_decoder.hpp"

namespace polymux::bindings {

class ExchangeHandle;

/// GIL held by every caller; one at a time.
class ChatFeed {
public:
    /// Of bytes that it is fed.
    explicit ChatFeed(const stream::ChatDecoderOptions& options) : decoder_(options) {}
    /// Of an exchange, which decodes.
    ChatFeed() = default;
    ChatFeed(const ChatFeed&) = delete;
    ChatFeed& operator=(const ChatFeed&) = delete;
    ~ChatFeed() {
        Py_XDECREF(given_);
        Py_XDECREF(keeper_);
        Py_XDECREF(finish_reason_);
    }

    /// The next chunk that is decoded already, a new reference; null without an exception where
    /// there is none, and with one where memory is out.
    PyObject* next();

    /// Decodes a bytes-like object; a chunk is handed on as it is. False with an exception set
    /// where it is neither.
    bool feed(PyObject* piece);
    /// What an exchange has decoded since, and its end.
    void take(ExchangeHandle& exchange);
    /// No more bytes will come.
    void finish();

    /// True once all is delivered and the stream has ended.
    bool at_end() const noexcept {
        return given_ == nullptr && position_ == batch_.records().size() && end_.has_value();
    }
    bool finished() const noexcept {
        return at_end() && end_->state == stream::StreamState::finished;
    }
    /// Sets the exception of an end that is no good one. Only at the end.
    void raise_end() const;

    PyObject* text() const;
    PyObject* finish_reason() const {
        return Py_NewRef(finish_reason_ == nullptr ? Py_None : finish_reason_);
    }
    PyObject* usage() const;
    std::uint64_t chunks() const noexcept { return transcript_.chunks(); }

private:
    bool feed_bytes(PyObject* bytes);
    bool feed_chunk(PyObject* chunk);
    void begin_batch();
    void take_end();
    PyObject* keeper_of(const stream::ChatRecord& record);

    std::optional<stream::ChatDecoder> decoder_;
    stream::ChatBatch batch_;
    std::size_t position_ = 0;  // Of the next record in the batch.
    std::optional<stream::StreamEnd> end_;
    std::optional<Error> failure_;  // Of the exchange: why the stream was interrupted.
    bool repeatable_ = false;       // The exchange: its request does no harm a second time.
    stream::Transcript transcript_;
    PyObject* given_ = nullptr;          // Owned; a chunk that was fed and is the next.
    bool was_given_ = false;             // Of chunks that were fed: no bytes tell the end.
    PyObject* keeper_ = nullptr;         // Owned; of the block of the last chunk.
    PyObject* finish_reason_ = nullptr;  // Owned.
    ChunkJson usage_;                    // Of the last chunk with token counts.
};

}  // namespace polymux::bindings
