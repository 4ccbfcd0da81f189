#include "chat_feed.hpp"

#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "chat_chunk.hpp"
#include "errors.hpp"
#include "exchange_handle.hpp"
#include "polymux/stream/chunk_parser.hpp"

namespace polymux::bindings {

namespace {

/// Decoding fewer bytes takes less time than releasing the GIL would save.
constexpr std::size_t worth_releasing_bytes = std::size_t{64} << 10U;

/// Runs `work`, which may throw only std::bad_alloc. Returns false with MemoryError set if it did.
template <typename Work>
bool run(std::size_t bytes, const Work& work) {
    bool done = false;
    const auto guarded = [&work, &done] {
        try {
            work();
            done = true;
        } catch (const std::bad_alloc&) {
        }
    };
    if (bytes >= worth_releasing_bytes) {
        without_gil(guarded);
    } else {
        guarded();
    }
    if (!done) PyErr_NoMemory();
    return done;
}

stream::StreamEnd broken_off(std::string why) {
    return {.state = stream::StreamState::interrupted, .message = std::move(why)};
}

stream::ChunkParser& parser() {
    static thread_local stream::ChunkParser of_this_thread;
    return of_this_thread;
}

}  // namespace

PyObject* ChatFeed::next() {
    if (given_ != nullptr) return std::exchange(given_, nullptr);
    if (position_ == batch_.records().size()) return nullptr;
    const stream::ChatRecord& record = batch_.records()[position_];
    PyObject* const keeper = keeper_of(record);
    if (keeper == nullptr) return nullptr;
    PyObject* const chunk = new_chat_chunk(batch_, record, keeper);
    if (chunk == nullptr) return nullptr;
    ++position_;
    transcript_.add(batch_.text(record), record.traits);
    if (record.traits.has_usage) {
        usage_ = json_of_chunk(chunk);
    }
    if (record.traits.choice_index <= 0 &&
        record.traits.finish_reason != stream::FinishReason::none) {
        Py_XSETREF(finish_reason_, Py_NewRef(finish_reason_of(chunk)));
    }
    return chunk;
}

PyObject* ChatFeed::keeper_of(const stream::ChatRecord& record) {
    if (keeper_ == nullptr || kept_block(keeper_) != record.block) {
        Py_XSETREF(keeper_, new_block_keeper(batch_.block_of(record)));
    }
    return keeper_;
}

/// Releases the last batch's blocks, so the decoder may write there again.
void ChatFeed::begin_batch() {
    if (keeper_ != nullptr && Py_REFCNT(keeper_) == 1) Py_CLEAR(keeper_);
    batch_.clear();
    position_ = 0;
}

void ChatFeed::take_end() {
    if (batch_.end()) end_ = batch_.end();
}

bool ChatFeed::feed(PyObject* piece) {
    return is_chat_chunk(piece) ? feed_chunk(piece) : feed_bytes(piece);
}

bool ChatFeed::feed_chunk(PyObject* chunk) {
    begin_batch();
    std::int64_t index = 0;
    const bool added = run(0, [this, chunk, &index] {
        const stream::ParsedChunk& parsed = parsed_chunk(chunk);
        index = parsed.traits.choice_index;
        transcript_.add(content_of_chunk(chunk), parsed.traits);
        if (parsed.traits.has_usage) usage_ = json_of_chunk(chunk);
    });
    if (!added) return false;
    if (index <= 0 && finish_reason_of(chunk) != Py_None) {
        Py_XSETREF(finish_reason_, Py_NewRef(finish_reason_of(chunk)));
    }
    Py_XSETREF(given_, Py_NewRef(chunk));
    was_given_ = true;
    return true;
}

bool ChatFeed::feed_bytes(PyObject* bytes) {
    Py_buffer buffer;
    if (PyObject_GetBuffer(bytes, &buffer, PyBUF_SIMPLE) != 0) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError,
                     "invalid data of a chat stream (got %.100s, allowed bytes-like objects). Pass "
                     "the bytes of the response as they arrive",
                     Py_TYPE(bytes)->tp_name);
        return false;
    }
    const std::string_view view(static_cast<const char*>(buffer.buf),
                                static_cast<std::size_t>(buffer.len));
    begin_batch();
    stream::ChunkParser& parse = parser();
    const bool fed =
        run(view.size(), [this, view, &parse] { decoder_->feed(view, parse, batch_); });
    PyBuffer_Release(&buffer);
    take_end();
    return fed;
}

void ChatFeed::finish() {
    begin_batch();
    if (decoder_ && !was_given_) {
        run(0, [this] { decoder_->finish(parser(), batch_); });
        take_end();
    } else if (!end_) {
        end_ = broken_off("the stream was closed before the response ended");
    }
}

void ChatFeed::take(ExchangeHandle& handle) {
    const transport::Exchange& exchange = handle.exchange();
    // Read before taking, because an end that arrives in between belongs to the next call.
    const bool ended = exchange.ended();
    begin_batch();
    handle.exchange().take(batch_);
    take_end();
    if (ended || end_) repeatable_ = exchange.repeatable();
    if (!ended || end_) return;
    failure_ = exchange.outcome().failure;
    end_ =
        broken_off(failure_ ? failure_->message : "the stream ended before the response started");
}

void ChatFeed::raise_end() const {
    static constexpr const char* kinds[] = {"", "", "interrupted", "undecodable", "failed"};
    try {
        const auto errors = py::module_::import("polymux._native.errors");
        const bool other = failure_ && failure_->code != ErrorCode::connection_lost;
        const py::object error =
            other ? errors.attr("stream_failed")(make_exception(*failure_),
                                                 to_text(transcript_.text()), transcript_.chunks())
                  : errors.attr("stream_ended")(
                        kinds[static_cast<std::size_t>(end_->state)], to_text(end_->message),
                        to_text(transcript_.text()), transcript_.chunks(), end_->offset_bytes,
                        to_text(end_->error_type), to_text(end_->error_code),
                        to_text(end_->error_param), py::arg("repeatable") = repeatable_);
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    } catch (py::error_already_set& error) {
        error.restore();
    }
}

PyObject* ChatFeed::text() const {
    const std::string_view text = transcript_.text();
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr);
}

PyObject* ChatFeed::usage() const {
    if (!usage_.block) Py_RETURN_NONE;
    PyObject* const raw = PyBytes_FromStringAndSize(usage_.block->data() + usage_.offset,
                                                    static_cast<Py_ssize_t>(usage_.bytes));
    if (raw == nullptr) return nullptr;
    PyObject* const usage = call_chunk_fields("usage", raw);
    Py_DECREF(raw);
    return usage;
}

}  // namespace polymux::bindings
