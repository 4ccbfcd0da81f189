#include "python_source.hpp"

#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <tuple>

#include "polymux/pool.hpp"
#include "python_bytes.hpp"

namespace polymux::bindings {
namespace {

/// Size of one `read`: larger sizes make no difference, smaller ones need more calls.
constexpr std::size_t read_bytes = 64 * 1024;
constexpr int poll_interval_ms = 50;

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
    HeldBuffer buffer_;  // Must outlive the source that reads from it.
    std::unique_ptr<media::ByteSource> inner_;
};

/// A binary file object. Offsets count from its initial position, so a conversion begins at the
/// caller's current position.
class FileObjectSource final : public media::ByteSource {
public:
    /// GIL held; raises the object's exceptions.
    FileObjectSource(const py::object& file, std::string name, const Job& job)
        : name_(std::move(name)), calls_(job.shared_calls()), token_(job.token()) {
        if (!has_method(file, "read")) {
            throw py::type_error(
                name_ + ": must be a path, bytes or a binary file (got an object of type " +
                Py_TYPE(file.ptr())->tp_name + ", which has no read() method)");
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
                         .message = "the operation was canceled while it waited for input",
                         .input_name = name_};
        }
        std::size_t count = 0;
        const auto called = calls_->call([&] {
            const auto held = held_result(invoke(read_.get(), py::make_tuple(wanted.size())),
                                          wanted.size(), name_);
            std::ranges::copy(held->bytes(), wanted.begin());
            count = held->bytes().size();
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
    /// Reads from an unbuffered pipe, terminal or socket only if data is available, so cancellation
    /// need not wait for its writer. Returns false if canceled.
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
        // Most objects in memory raise io.UnsupportedOperation; a KeyboardInterrupt propagates.
        if (!raised.matches(PyExc_Exception)) {
            throw;
        }
    } catch (const py::cast_error&) {  // Not an int, so not a descriptor.
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
        throw py::type_error(
            "a source must be a (\"path\" | \"bytes\" | \"file\", object, name) tuple");
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
