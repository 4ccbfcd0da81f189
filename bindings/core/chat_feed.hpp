// Code shared by both kinds of chat streams: decodes bytes into chunk objects and keeps the totals
// of the response.
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

/// Every caller holds the GIL; one at a time.
class ChatFeed {
public:
    /// Decodes bytes passed to `feed`.
    explicit ChatFeed(const stream::ChatDecoderOptions& options) : decoder_(options) {}
    /// For an exchange, which decodes itself.
    ChatFeed() = default;
    ChatFeed(const ChatFeed&) = delete;
    ChatFeed& operator=(const ChatFeed&) = delete;
    ~ChatFeed() {
        Py_XDECREF(given_);
        Py_XDECREF(keeper_);
        Py_XDECREF(finish_reason_);
    }

    /// The next decoded chunk, a new reference. Null without an exception if no chunk is ready;
    /// null with an exception if out of memory.
    PyObject* next();

    /// Decodes a bytes-like object; passes a chunk through unchanged. Returns false with an
    /// exception set for other objects.
    bool feed(PyObject* piece);
    /// Takes the chunks that an exchange has decoded since, and its end.
    void take(ExchangeHandle& exchange);
    /// Marks the end of the bytes.
    void finish();

    /// True when everything is delivered and the stream has ended.
    bool at_end() const noexcept {
        return given_ == nullptr && position_ == batch_.records().size() && end_.has_value();
    }
    bool finished() const noexcept {
        return at_end() && end_->state == stream::StreamState::finished;
    }
    /// Sets the exception if the stream did not end successfully. Call only at the end.
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
    std::size_t position_ = 0;  // Index of the next record in the batch.
    std::optional<stream::StreamEnd> end_;
    std::optional<Error> failure_;  // For an exchange: why the stream was interrupted.
    bool repeatable_ = false;       // For an exchange: a repetition of its request is safe.
    stream::Transcript transcript_;
    PyObject* given_ = nullptr;          // Owned; a chunk passed to `feed` that is next.
    bool was_given_ = false;             // Chunks were passed to `feed`, so no bytes mark the end.
    PyObject* keeper_ = nullptr;         // Owned; keeper of the last chunk's block.
    PyObject* finish_reason_ = nullptr;  // Owned.
    ChunkJson usage_;                    // JSON of the last chunk with token counts.
};

}  // namespace polymux::bindings
