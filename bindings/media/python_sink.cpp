#include "python_sink.hpp"

#include <fcntl.h>

#include <cstdio>
#include <string>
#include <tuple>

#include "python_source.hpp"
#include "python_writer.hpp"

namespace polymux::bindings {
namespace {

/// A file opened for appending writes at its end regardless of seeking.
bool appends(const py::object& file) {
    const int descriptor = descriptor_of(file);
    const int flags = descriptor < 0 ? -1 : fcntl(descriptor, F_GETFL);
    return flags >= 0 && (flags & O_APPEND) != 0;
}

/// A binary file object with write(); patched in place if it can seek.
class FileObjectSink final : public media::ByteSink {
public:
    /// GIL held; raises the object's exceptions.
    FileObjectSink(const py::object& file, std::shared_ptr<PythonCalls> calls)
        : calls_(std::move(calls)), writer_(file) {
        if (py::hasattr(file, "flush")) {
            flush_ = Reference(file.attr("flush"));
        }
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
        return calls_->call([&] { writer_.write_all(bytes); });
    }

    Result<void> patch(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override {
        return calls_->call([&] {
            const py::object end = invoke(tell_.get());
            invoke(seek_.get(), py::make_tuple(start_ + offset_bytes));
            writer_.write_all(bytes);
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
    std::shared_ptr<PythonCalls> calls_;
    PythonWriter writer_;
    Reference flush_;  // The bound methods keep the object.
    Reference seek_;
    Reference tell_;
    std::uint64_t start_ = 0;
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
        throw py::type_error("a destination must be None or a (\"path\" | \"file\", object) tuple");
    }
    return output;
}

Result<std::unique_ptr<media::ByteSink>> Output::open(
    const std::optional<media::FileIdentity>& input,
    const std::optional<media::FileIdentity>& other_input) {
    if (!sink_) {
        return media::create_file_sink(
            path_, {.overwrite = overwrite_, .input = input, .other_input = other_input});
    }
    if (identity_ && (identity_ == input || identity_ == other_input)) {
        return Error{.code = ErrorCode::output_refused,
                     .message = "invalid destination: it is the input file. Write to another file"};
    }
    return std::move(sink_);
}

}  // namespace polymux::bindings
