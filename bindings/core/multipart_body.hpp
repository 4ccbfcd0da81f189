// A Python multipart body: parts from Python objects, one reader at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

#include "errors.hpp"
#include "free_threads.hpp"
#include "polymux/request/multipart.hpp"
#include "python_bytes.hpp"
#include "python_parts.hpp"

namespace polymux::bindings {

/// (field, kind, object, name for messages, file name, content type, size if known).
using UploadedFile = std::tuple<std::string, std::string, py::object, std::string, std::string,
                                std::string, std::optional<std::uint64_t>>;

/// Returns the result of core code on a thread without the GIL, including out of memory.
template <typename T, typename Work>
Result<T> without_gil_result(const Work& work) {
    Result<T> result = Error{};
    without_gil([&] {
        try {
            result = work();
        } catch (const std::bad_alloc&) {
            result = Error{.code = ErrorCode::out_of_memory, .message = "not enough memory"};
        }
    });
    return result;
}

/// Every caller holds the GIL, unless noted otherwise.
class MultipartObject {
public:
    using steady_clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds progress_interval{50};
    static constexpr std::size_t iteration_bytes = std::size_t{64} << 10U;

    MultipartObject(const std::vector<std::pair<std::string, std::string>>& fields,
                    const std::vector<UploadedFile>& files, py::object on_progress)
        : body_(std::make_shared<request::MultipartBody>(
              value_or_raise(request::MultipartBody::create()))) {
        for (const auto& [name, value] : fields) raise_if_failed(body_->add_text(name, value));
        for (const UploadedFile& file : files) add(file);
        set_on_progress(std::move(on_progress));
    }

    py::str content_type() const { return to_text(body_->content_type()); }
    std::optional<std::uint64_t> length_bytes() const { return body_->length_bytes(); }
    std::uint64_t sent_bytes() const { return body_->sent_bytes(); }
    bool finished() const { return body_->finished(); }
    bool can_rewind() const { return body_->can_rewind(); }
    bool may_block() const { return may_block_; }

    py::object on_progress() const {
        const std::scoped_lock lock(lock_);
        return on_progress_ ? py::reinterpret_borrow<py::object>(on_progress_.get()) : py::none();
    }
    void set_on_progress(py::object callback) {
        Reference given = callback.is_none() ? Reference() : Reference(std::move(callback));
        const std::scoped_lock lock(lock_);
        std::swap(on_progress_, given);  // The previous one is dropped after the lock is released.
    }

    /// Reads up to `size` bytes. Returns None if more must be fed first.
    py::object read_or_none(py::ssize_t size) {
        if (size <= 0)
            throw py::value_error("invalid read size (got " + std::to_string(size) +
                                  ", allowed at least 1 byte)");
        const ReadGuard guard(*this);
        if (calls_->failed()) calls_->raise();
        PyObject* bytes = PyBytes_FromStringAndSize(nullptr, size);
        if (bytes == nullptr) throw py::error_already_set();
        auto owned = py::reinterpret_steal<py::object>(bytes);
        const std::span<char> buffer(PyBytes_AS_STRING(bytes), static_cast<std::size_t>(size));
        const auto count = without_gil_result<std::size_t>(
            [&] { return body_->read(std::as_writable_bytes(buffer)); });
        if (!count) raise_failure(count.error());
        report_progress(body_->sent_bytes(), body_->finished());
        if (*count == 0 && body_->starved()) return py::none();
        bytes = owned.release().ptr();
        if (_PyBytes_Resize(&bytes, static_cast<py::ssize_t>(*count)) != 0) {
            throw py::error_already_set();
        }
        return py::reinterpret_steal<py::object>(bytes);
    }

    py::object read(py::ssize_t size) {
        py::object piece = read_or_none(size);
        if (piece.is_none()) {
            throw py::type_error(
                "a part of this body is an async iterator. Read the body with 'async for' or "
                "'await body.aread()'");
        }
        return piece;
    }

    py::object next() {
        py::object piece = read(iteration_bytes);
        if (PyBytes_GET_SIZE(piece.ptr()) == 0) throw py::stop_iteration();
        return piece;
    }

    void rewind() {
        const ReadGuard guard(*this);
        calls_->clear();
        const auto rewound = without_gil_result<void>([&] { return body_->rewind(); });
        if (!rewound) raise_failure(rewound.error());
        const std::scoped_lock lock(lock_);
        last_progress_ = {};
        reported_bytes_ = {};
    }

    /// The async iterator that the body waits for.
    py::object awaited() const {
        return py::reinterpret_borrow<py::object>(current_feed().iterator.get());
    }
    void feed(const py::object& piece) {
        request::Feed& feed = *current_feed().feed;
        if (piece.is_none()) {
            feed.finish();
            return;
        }
        if (PyObject_CheckBuffer(piece.ptr()) == 0) {
            throw py::type_error(
                std::string("an async iterable sent as a file must yield bytes, not ") +
                Py_TYPE(piece.ptr())->tp_name);
        }
        const HeldBuffer held(piece);
        feed.push({held.bytes().begin(), held.bytes().end()});
    }
    /// Makes every later read raise `exception`.
    void fail(py::object exception) {
        py::object traceback = exception.attr("__traceback__");
        calls_->keep(std::move(exception), std::move(traceback));
    }

    int traverse(visitproc visit, void* arg) const {
        Py_VISIT(on_progress_.get().ptr());
        for (const AsyncPart& part : async_parts_) Py_VISIT(part.iterator.get().ptr());
        for (const PythonPart* part : python_parts_) {
            if (const int stop = part->traverse(visit, arg); stop != 0) return stop;
        }
        return calls_->traverse(visit, arg);
    }
    void clear() noexcept {
        cleared_ = true;
        on_progress_.reset();
        for (AsyncPart& part : async_parts_) part.iterator.reset();
        for (PythonPart* part : python_parts_) part->clear();
        calls_->clear();
    }

    /// Lends the body to an exchange, which alone reads it, on any thread, until `release`.
    std::shared_ptr<request::MultipartBody> acquire() {
        lock_reader();
        calls_->clear();
        return body_;
    }
    void release() noexcept { busy_ = false; }
    /// Reports to the callback, if any, how much of a lent body was sent.
    void report_progress(std::uint64_t sent_bytes, bool finished) {
        py::object callback;
        {
            const std::scoped_lock lock(lock_);
            if (!on_progress_ || reported_bytes_ == sent_bytes) return;
            const auto now = steady_clock::now();
            if (!finished && now - last_progress_ < progress_interval) return;
            last_progress_ = now;
            reported_bytes_ = sent_bytes;
            callback = py::reinterpret_borrow<py::object>(on_progress_.get());
        }
        // Qualified, because std::invoke would otherwise be found for an object, and would pass the
        // tuple itself.
        const auto called = calls_->call(
            [&] { bindings::invoke(callback, py::make_tuple(sent_bytes, body_->length_bytes())); });
        if (!called) calls_->raise();
    }
    /// Raises an exception of a part or of the callback. Returns if neither raised.
    void raise_kept() const {
        if (calls_->failed()) calls_->raise();
    }

private:
    void lock_reader() {
        if (cleared_) throw std::runtime_error("this body is being destroyed");
        if (busy_.exchange(true)) {
            throw std::runtime_error(
                "this body is already being read, by another thread or in a callback of one of its "
                "parts");
        }
    }

    /// Allows one reader at a time: a part's file object may call back here, and so may other
    /// threads while the GIL is released.
    class ReadGuard {
    public:
        explicit ReadGuard(MultipartObject& body) : body_(body) { body_.lock_reader(); }
        ~ReadGuard() { body_.busy_ = false; }
        ReadGuard(const ReadGuard&) = delete;
        ReadGuard& operator=(const ReadGuard&) = delete;

    private:
        MultipartObject& body_;
    };

    struct AsyncPart {
        std::size_t file = 0;  // Same numbering as `current_file`.
        Reference iterator;
        std::shared_ptr<request::Feed> feed;
    };

    void add(const UploadedFile& file) {
        const auto& [field, kind, object, name, file_name, content_type, size] = file;
        auto source = open(kind, object, name, size);
        raise_if_failed(body_->add_file(
            field, {.file_name = file_name, .content_type = content_type}, std::move(source)));
        ++files_;
    }

    std::unique_ptr<request::PartSource> open(const std::string& kind, const py::object& object,
                                              const std::string& name,
                                              std::optional<std::uint64_t> size) {
        if (kind == "bytes") {
            const auto held = std::make_shared<HeldBuffer>(object);
            return request::memory_part(held->bytes(), name, held);
        }
        if (kind == "async") {
            auto feed = std::make_shared<request::Feed>();
            async_parts_.push_back({.file = files_, .iterator = Reference(object), .feed = feed});
            return request::fed_part(std::move(feed), name, size);
        }
        may_block_ = true;
        if (kind == "path") {
            const std::string path = object.cast<py::bytes>();
            return value_or_raise(without_gil_result<std::unique_ptr<request::PartSource>>(
                [&path] { return request::file_part(path); }));
        }
        if (kind != "file" && kind != "iterable") {
            throw py::type_error(
                "invalid kind of file (allowed: path, bytes, file, iterable, async)");
        }
        auto part = kind == "file" ? file_object_part(object, name, calls_)
                                   : iterable_part(object, name, size, calls_);
        python_parts_.push_back(part.get());
        return part;
    }

    const AsyncPart& current_feed() const {
        for (const AsyncPart& part : async_parts_) {
            if (part.file == body_->current_file()) return part;
        }
        throw std::runtime_error("this body is not waiting for an async iterator");
    }

    static void raise_if_failed(const Result<void>& result) {
        if (!result) raise(result.error());
    }
    [[noreturn]] void raise_failure(const Error& error) const {
        raise_kept();
        raise(error);
    }

    std::shared_ptr<PythonCalls> calls_ = std::make_shared<PythonCalls>();
    std::vector<AsyncPart> async_parts_;
    std::vector<PythonPart*> python_parts_;  // Owned by the body.
    std::size_t files_ = 0;
    std::shared_ptr<request::MultipartBody> body_;
    mutable GilLock lock_;  // Guards the following three.
    Reference on_progress_;
    steady_clock::time_point last_progress_{};
    std::optional<std::uint64_t> reported_bytes_;
    std::atomic<bool> busy_{false};
    bool may_block_ = false;
    bool cleared_ = false;
};

}  // namespace polymux::bindings
