#include "python_parts.hpp"

#include <algorithm>

namespace polymux::bindings {

namespace {

/// Size of one `read` of a file object: fewer calls into Python save more than the copy costs.
constexpr std::size_t piece_bytes = 256 * 1024;

/// Keeps the callable alive during the call. Raises RuntimeError if the garbage collector has
/// cleared it.
py::object kept(const Reference& callable) {
    if (callable) return py::reinterpret_borrow<py::object>(callable.get());
    PyErr_SetString(PyExc_RuntimeError, "this body is being destroyed");
    throw py::error_already_set();
}

class FileObjectPart final : public PythonPart {
public:
    FileObjectPart(const py::object& file, std::string name, std::shared_ptr<PythonCalls> calls)
        : PythonPart(std::move(name), std::move(calls)), read_(file.attr("read")) {
        seekable_ = has_method(file, "seek") && has_method(file, "tell") &&
                    (!has_method(file, "seekable") || py::bool_(file.attr("seekable")()));
        if (!seekable_) return;
        seek_ = Reference(file.attr("seek"));
        const py::object start = file.attr("tell")();
        start_ = start.cast<std::uint64_t>();
        file.attr("seek")(0, SEEK_END);
        const auto end = file.attr("tell")().cast<std::uint64_t>();
        file.attr("seek")(start);
        size_bytes_ = end > start_ ? end - start_ : 0;
    }

    std::optional<std::uint64_t> size_bytes() const noexcept override { return size_bytes_; }
    bool can_rewind() const noexcept override { return seekable_; }

    int traverse(visitproc visit, void* arg) const override {
        Py_VISIT(read_.get().ptr());
        Py_VISIT(seek_.get().ptr());
        return 0;
    }
    void clear() noexcept override {
        read_.reset();
        seek_.reset();
    }

protected:
    std::unique_ptr<HeldBuffer> next(std::size_t size) override {
        const std::size_t asked = std::min(size, piece_bytes);
        auto held = held_result(invoke(kept(read_), py::make_tuple(asked)), asked, name());
        if (held->bytes().empty()) held.reset();
        return held;
    }
    void restart() override { invoke(kept(seek_), py::make_tuple(start_)); }

private:
    Reference read_;  // The bound methods keep the object.
    Reference seek_;
    std::uint64_t start_ = 0;
    std::optional<std::uint64_t> size_bytes_;
    bool seekable_ = false;
};

py::object iterator_of(py::handle iterable) {
    PyObject* const iterator = PyObject_GetIter(iterable.ptr());
    if (iterator == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(iterator);
}

class IterablePart final : public PythonPart {
public:
    IterablePart(const py::object& iterable, std::string name,
                 std::optional<std::uint64_t> size_bytes, std::shared_ptr<PythonCalls> calls)
        : PythonPart(std::move(name), std::move(calls)), size_bytes_(size_bytes) {
        py::object iterator = iterator_of(iterable);
        next_ = Reference(iterator.attr("__next__"));
        if (!iterator.is(iterable)) iterable_ = Reference(iterable);
    }

    std::optional<std::uint64_t> size_bytes() const noexcept override { return size_bytes_; }
    bool can_rewind() const noexcept override { return static_cast<bool>(iterable_); }

    int traverse(visitproc visit, void* arg) const override {
        Py_VISIT(iterable_.get().ptr());
        Py_VISIT(next_.get().ptr());
        return 0;
    }
    void clear() noexcept override {
        iterable_.reset();
        next_.reset();
    }

protected:
    std::unique_ptr<HeldBuffer> next(std::size_t /*size*/) override {
        for (;;) {
            const py::object piece = next_object();
            if (!piece) return {};
            if (PyObject_CheckBuffer(piece.ptr()) == 0) {
                throw py::type_error(name() + ": an iterable sent as a file must yield " +
                                     "bytes, not " + Py_TYPE(piece.ptr())->tp_name);
            }
            auto held = std::make_unique<HeldBuffer>(piece);
            if (!held->bytes().empty()) return held;
        }
    }
    void restart() override { next_ = Reference(iterator_of(kept(iterable_)).attr("__next__")); }

private:
    /// Null at the end.
    py::object next_object() const {
        try {
            return invoke(kept(next_));
        } catch (const py::error_already_set& raised) {
            if (!raised.matches(PyExc_StopIteration)) throw;
            return {};
        }
    }

    Reference iterable_;
    Reference next_;  // The iterator's bound method, which keeps it.
    std::optional<std::uint64_t> size_bytes_;
};

}  // namespace

Result<std::size_t> PythonPart::read(std::span<std::byte> buffer) {
    if (piece_ == nullptr || offset_ == piece_->bytes().size()) {
        const auto called = calls_->call([this] {
            piece_.reset();
            piece_ = next(piece_bytes);
            offset_ = 0;
        });
        if (!called) return named(called.error());
        if (piece_ == nullptr) return std::size_t{0};
    }
    const auto rest = piece_->bytes().subspan(offset_);
    const auto taken = rest.first(std::min(rest.size(), buffer.size()));
    std::ranges::copy(taken, buffer.begin());
    offset_ += taken.size();
    return taken.size();
}

Result<void> PythonPart::check_unchanged() {
    bool more = piece_ != nullptr && offset_ < piece_->bytes().size();
    if (!more) {
        const auto called = calls_->call([&] { more = next(1) != nullptr; });
        if (!called) return named(called.error());
    }
    if (!more) return {};
    return named({.code = ErrorCode::input_changed,
                  .message = name_ + " returned more than the " +
                             std::to_string(size_bytes().value_or(0)) +
                             " bytes that it had when sending started. Send it again when it is no "
                             "longer being written, or send a copy"});
}

Result<void> PythonPart::rewind() {
    const auto called = calls_->call([this] {
        piece_.reset();
        restart();
    });
    if (!called) return named(called.error());
    return {};
}

Error PythonPart::named(Error error) const {
    error.input_name = name_;
    return error;
}

std::unique_ptr<PythonPart> file_object_part(const py::object& file, std::string name,
                                             std::shared_ptr<PythonCalls> calls) {
    return std::make_unique<FileObjectPart>(file, std::move(name), std::move(calls));
}

std::unique_ptr<PythonPart> iterable_part(const py::object& iterable, std::string name,
                                          std::optional<std::uint64_t> size_bytes,
                                          std::shared_ptr<PythonCalls> calls) {
    return std::make_unique<IterablePart>(iterable, std::move(name), size_bytes, std::move(calls));
}

}  // namespace polymux::bindings
