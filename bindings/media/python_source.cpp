#include "python_source.hpp"

#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <tuple>

#include "polymux/pool.hpp"

namespace polymux::bindings {
namespace {

/// Bytes asked of one `read`: larger ones make no difference, smaller ones cost calls.
constexpr std::size_t read_bytes = 64 * 1024;
constexpr int poll_interval_ms = 50;

bool has_method(const py::object& object, const char* name) {
    return py::hasattr(object, name) && PyCallable_Check(object.attr(name).ptr()) != 0;
}

/// Contiguous memory of a Python object, held and so unmovable until released. GIL held to make
/// one; dropped from any thread.
class HeldBuffer {
public:
    explicit HeldBuffer(const py::object& object) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) {
            throw py::error_already_set();
        }
    }
    HeldBuffer(const HeldBuffer&) = delete;
    HeldBuffer& operator=(const HeldBuffer&) = delete;
    ~HeldBuffer() {
        with_gil([this] { PyBuffer_Release(&view_); });
    }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
        return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
    }

private:
    Py_buffer view_{};
};

class BufferSource final : public media::ByteSource {
public:
    BufferSource(const py::object& object, std::string name)
        : buffer_(object), inner_(media::memory_source(buffer_.bytes(), std::move(name))) {}

    Result<std::size_t> read(std::span<std::byte> buffer) override { return inner_->read(buffer); }
    Result<void> seek(std::uint64_t offset_bytes) override { return inner_->seek(offset_bytes); }
    bool seekable() const noexcept override { return inner_->seekable(); }
    std::optional<std::uint64_t> size_bytes() const noexcept override {
        return inner_->size_bytes();
    }
    const std::string& name() const noexcept override { return inner_->name(); }

private:
    HeldBuffer buffer_;  // Outlives the source that reads from it.
    std::unique_ptr<media::ByteSource> inner_;
};

/// Copies what `read(n)` returned; raises for what a binary file never returns.
std::size_t copy_result(const py::object& result, std::span<std::byte> buffer,
                        const std::string& name) {
    if (result.is_none()) {
        PyErr_Format(PyExc_BlockingIOError,
                     "%s: read() returned None, so the file does not wait for data; open it in "
                     "blocking mode",
                     name.c_str());
        throw py::error_already_set();
    }
    if (PyUnicode_Check(result.ptr())) {
        throw py::type_error(name +
                             ": read() returned str, so the file is in text mode; open it "
                             "in binary mode, open(path, \"rb\")");
    }
    const HeldBuffer returned(result);
    if (returned.bytes().size() > buffer.size()) {
        throw py::value_error(name + ": read(" + std::to_string(buffer.size()) + ") returned " +
                              std::to_string(returned.bytes().size()) + " bytes");
    }
    std::ranges::copy(returned.bytes(), buffer.begin());
    return returned.bytes().size();
}

/// A binary file object. Offsets count from its position at the start, so that a conversion begins
/// where the caller stands.
class FileObjectSource final : public media::ByteSource {
public:
    /// GIL held; raises what the object raises.
    FileObjectSource(const py::object& file, std::string name, const Job& job)
        : name_(std::move(name)), calls_(job.shared_calls()), token_(job.token()) {
        if (!has_method(file, "read")) {
            throw py::type_error(name_ +
                                 ": not a path, bytes or a binary file: an object of type " +
                                 Py_TYPE(file.ptr())->tp_name + " has no read() method");
        }
        read_ = Reference(file.attr("read"));
        identity_ = identity_of(file);
        if (!identity_ && py::type::of(file).is(py::module_::import("io").attr("FileIO"))) {
            polled_descriptor_ = descriptor_of(file);
        }
        seekable_ = has_method(file, "seek") && has_method(file, "tell") &&
                    (!has_method(file, "seekable") || py::bool_(file.attr("seekable")()));
        if (seekable_) {
            seek_ = Reference(file.attr("seek"));
            start_ = file.attr("tell")().cast<std::uint64_t>();
            file.attr("seek")(0, SEEK_END);
            const auto end = file.attr("tell")().cast<std::uint64_t>();
            file.attr("seek")(start_);
            size_bytes_ = end > start_ ? end - start_ : 0;
        }
    }

    Result<std::size_t> read(std::span<std::byte> buffer) override {
        const auto wanted = buffer.first(std::min(buffer.size(), read_bytes));
        if (!wait_readable()) {
            return Error{.code = ErrorCode::cancelled,
                         .message = "cancelled while waiting for input",
                         .input_name = name_};
        }
        std::size_t count = 0;
        const auto called = calls_->call([&] {
            count = copy_result(invoke(read_.get(), py::make_tuple(wanted.size())), wanted, name_);
        });
        if (!called) {
            return named(called.error());
        }
        return count;
    }

    Result<void> seek(std::uint64_t offset_bytes) override {
        const auto called =
            calls_->call([&] { invoke(seek_.get(), py::make_tuple(start_ + offset_bytes)); });
        if (!called) {
            return named(called.error());
        }
        return {};
    }

    bool seekable() const noexcept override { return seekable_; }
    std::optional<std::uint64_t> size_bytes() const noexcept override { return size_bytes_; }
    const std::string& name() const noexcept override { return name_; }
    std::optional<media::FileIdentity> identity() const noexcept override { return identity_; }

private:
    /// An unbuffered pipe, terminal or socket is asked for data only when it has some, so that
    /// cancelling need not wait for its writer. False when cancelled.
    bool wait_readable() const {
        if (polled_descriptor_ < 0 || readable_within(0)) {
            return !token_.cancelled();
        }
        const Pool::Blocking waiting;  // Conversions that have their input may use this core.
        while (!token_.cancelled() && !readable_within(poll_interval_ms)) {
        }
        return !token_.cancelled();
    }

    bool readable_within(int timeout_ms) const {
        pollfd polled{.fd = polled_descriptor_, .events = POLLIN, .revents = 0};
        return poll(&polled, 1, timeout_ms) != 0;
    }

    Error named(Error error) const {
        error.input_name = name_;
        return error;
    }

    std::string name_;
    std::shared_ptr<PythonCalls> calls_;
    CancelToken token_;
    Reference read_;  // The bound methods keep the object.
    Reference seek_;
    std::optional<media::FileIdentity> identity_;
    std::optional<std::uint64_t> size_bytes_;
    std::uint64_t start_ = 0;
    int polled_descriptor_ = -1;
    bool seekable_ = false;
};

}  // namespace

int descriptor_of(const py::object& file) {
    try {
        return has_method(file, "fileno") ? file.attr("fileno")().cast<int>() : -1;
    } catch (const py::error_already_set& raised) {
        // Most objects in memory raise io.UnsupportedOperation; a KeyboardInterrupt goes on.
        if (!raised.matches(PyExc_Exception)) {
            throw;
        }
    } catch (const py::cast_error&) {  // Not an int: not a descriptor.
    }
    return -1;
}

std::optional<media::FileIdentity> identity_of(const py::object& file) {
    struct stat status{};
    const int descriptor = descriptor_of(file);
    if (descriptor < 0 || fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
        return {};
    }
    return media::FileIdentity{.device = status.st_dev, .inode = status.st_ino};
}

std::shared_ptr<Input> Input::parse(const py::object& argument, const Job& job) {
    const auto [kind, object, name] =
        argument.cast<std::tuple<std::string, py::object, std::string>>();
    auto input = std::make_shared<Input>();
    if (kind == "path") {
        input->path_ = object.cast<py::bytes>();
    } else if (kind == "bytes") {
        input->source_ = std::make_unique<BufferSource>(object, name);
    } else if (kind == "file") {
        input->source_ = std::make_unique<FileObjectSource>(object, name, job);
    } else {
        throw py::type_error("a source is a (\"path\" | \"bytes\" | \"file\", object, name) tuple");
    }
    return input;
}

Result<std::unique_ptr<media::ByteSource>> Input::open() {
    if (source_) {
        return std::move(source_);
    }
    return media::open_file(path_);
}

}  // namespace polymux::bindings
