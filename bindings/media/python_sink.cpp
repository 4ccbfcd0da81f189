#include "python_sink.hpp"

#include <fcntl.h>

#include <cstdio>
#include <string>
#include <tuple>

#include "python_source.hpp"

namespace polymux::bindings {
namespace {

/// Writes of a file opened for appending go to its end wherever one seeks.
bool appends(const py::object& file) {
    const int descriptor = descriptor_of(file);
    const int flags = descriptor < 0 ? -1 : fcntl(descriptor, F_GETFL);
    return flags >= 0 && (flags & O_APPEND) != 0;
}

py::object bytes_object(std::span<const std::byte> bytes) {
    return py::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

/// A binary file object with write(); patched in place when it can seek.
class FileObjectSink final : public media::ByteSink {
public:
    /// GIL held; raises what the object raises.
    FileObjectSink(const py::object& file, std::shared_ptr<PythonCalls> calls)
        : calls_(std::move(calls)) {
        const py::module_ io = py::module_::import("io");
        if (py::isinstance(file, io.attr("TextIOBase"))) {
            throw py::type_error(
                "the destination is a file in text mode; open it in binary mode, "
                "open(path, \"wb\")");
        }
        if (!py::hasattr(file, "write")) {
            throw py::type_error(std::string("the destination is no path and no binary file: an "
                                             "object of type ") +
                                 Py_TYPE(file.ptr())->tp_name + " has no write() method");
        }
        write_ = Reference(file.attr("write"));
        if (py::hasattr(file, "flush")) {
            flush_ = Reference(file.attr("flush"));
        }
        raw_ = py::isinstance(file, io.attr("RawIOBase"));
        can_patch_ = py::hasattr(file, "seekable") && py::hasattr(file, "seek") &&
                     py::hasattr(file, "tell") && file.attr("seekable")().is(py::bool_(true)) &&
                     !appends(file);
        if (can_patch_) {
            seek_ = Reference(file.attr("seek"));
            tell_ = Reference(file.attr("tell"));
            start_ = file.attr("tell")().cast<std::uint64_t>();
        }
    }

    Result<void> write(std::span<const std::byte> bytes) override {
        return calls_->call([&] { write_all(bytes); });
    }

    Result<void> patch(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override {
        return calls_->call([&] {
            const py::object end = invoke(tell_.get());
            invoke(seek_.get(), py::make_tuple(start_ + offset_bytes));
            write_all(bytes);
            invoke(seek_.get(), py::make_tuple(end));
        });
    }

    bool can_patch() const noexcept override { return can_patch_; }

    Result<void> commit() override {
        return calls_->call([&] {
            if (flush_) {
                invoke(flush_.get());
            }
        });
    }

private:
    void write_all(std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            const py::object returned = invoke(write_.get(), py::make_tuple(bytes_object(bytes)));
            bytes = bytes.subspan(written(returned, bytes.size()));
        }
    }

    /// What write() returned, read as Python's file types mean it.
    std::size_t written(const py::object& returned, std::size_t offered) const {
        if (returned.is_none()) {
            if (!raw_) {
                return offered;
            }
            PyErr_SetString(PyExc_BlockingIOError,
                            "write() of the destination returned None, so it takes no data now; "
                            "open it in blocking mode");
            throw py::error_already_set();
        }
        const auto count = returned.cast<long long>();
        if (count <= 0 || static_cast<unsigned long long>(count) > offered) {
            throw py::value_error("write() of the destination returned " + std::to_string(count) +
                                  " for " + std::to_string(offered) + " bytes");
        }
        return static_cast<std::size_t>(count);
    }

    std::shared_ptr<PythonCalls> calls_;
    Reference write_;  // The bound methods keep the object.
    Reference flush_;
    Reference seek_;
    Reference tell_;
    std::uint64_t start_ = 0;
    bool raw_ = false;
    bool can_patch_ = false;
};

}  // namespace

std::shared_ptr<Output> Output::parse(const py::object& argument, bool overwrite, const Job& job) {
    auto output = std::make_shared<Output>();
    output->overwrite_ = overwrite;
    if (argument.is_none()) {
        output->in_memory_ = true;
        output->sink_ = std::make_unique<ChunkedSink>(&output->bytes_);
        return output;
    }
    const auto [kind, object] = argument.cast<std::tuple<std::string, py::object>>();
    if (kind == "path") {
        output->path_ = object.cast<py::bytes>();
    } else if (kind == "file") {
        output->identity_ = identity_of(object);
        output->sink_ = std::make_unique<FileObjectSink>(object, job.shared_calls());
    } else {
        throw py::type_error("a destination is None or a (\"path\" | \"file\", object) tuple");
    }
    return output;
}

Result<std::unique_ptr<media::ByteSink>> Output::open(
    const std::optional<media::FileIdentity>& input) {
    if (!sink_) {
        return media::create_file_sink(path_, {.overwrite = overwrite_, .input = input});
    }
    if (input && identity_ == input) {
        return Error{.code = ErrorCode::output_refused,
                     .message = "the destination is the input file itself; write to another file"};
    }
    return std::move(sink_);
}

}  // namespace polymux::bindings
