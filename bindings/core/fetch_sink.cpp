#include "fetch_sink.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

namespace polymux::bindings {
namespace {

constexpr std::size_t block_bytes = 1024 * 1024;

/// In blocks, so that a growing body is copied once and not again and again.
class MemorySink final : public BodySink {
public:
    Result<void> write(std::span<const std::byte> piece) override {
        size_ += piece.size();
        while (!piece.empty()) {
            if (blocks_.empty() || blocks_.back().size() == block_bytes) {
                blocks_.emplace_back();
                // A short body takes no whole block.
                if (blocks_.size() > 1) blocks_.back().reserve(block_bytes);
            }
            const std::size_t room = block_bytes - blocks_.back().size();
            const auto part = piece.first(std::min(room, piece.size()));
            blocks_.back().append(reinterpret_cast<const char*>(part.data()), part.size());
            piece = piece.subspan(part.size());
        }
        return {};
    }

    py::object take_bytes() override {
        py::object bytes =
            owned(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size_)));
        char* place = PyBytes_AS_STRING(bytes.ptr());
        for (std::string& block : blocks_) {
            place += block.copy(place, block.size());
            std::string().swap(block);
        }
        blocks_.clear();
        return bytes;
    }

private:
    std::vector<std::string> blocks_;
    std::size_t size_ = 0;
};

class DescriptorSink final : public BodySink {
public:
    explicit DescriptorSink(int descriptor) : descriptor_(descriptor) {}

    Result<void> write(std::span<const std::byte> piece) override {
        while (!piece.empty()) {
            const ssize_t count = ::write(descriptor_, piece.data(), piece.size());
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) {
                const int number = errno;
                return Error{
                    .code = ErrorCode::output_failed,
                    .message = std::string("the body cannot be written: ") + std::strerror(number),
                    .os_errno = number};
            }
            piece = piece.subspan(static_cast<std::size_t>(count));
        }
        return {};
    }

private:
    int descriptor_;
};

class FileObjectSink final : public BodySink {
public:
    FileObjectSink(const py::object& file, std::shared_ptr<PythonCalls> calls)
        : calls_(std::move(calls)) {
        if (py::isinstance(file, py::module_::import("io").attr("TextIOBase"))) {
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
    }

    Result<void> write(std::span<const std::byte> piece) override {
        return calls_->call([&] {
            while (!piece.empty()) {
                const py::bytes bytes(reinterpret_cast<const char*>(piece.data()), piece.size());
                const py::object returned = invoke(write_.get(), py::make_tuple(bytes));
                piece = piece.subspan(returned.is_none() ? piece.size() : taken(returned, piece));
            }
        });
    }

private:
    static std::size_t taken(const py::object& returned, std::span<const std::byte> offered) {
        const auto count = returned.cast<long long>();
        if (count <= 0 || static_cast<unsigned long long>(count) > offered.size()) {
            throw py::value_error("write() of the destination returned " + std::to_string(count) +
                                  " for " + std::to_string(offered.size()) + " bytes");
        }
        return static_cast<std::size_t>(count);
    }

    std::shared_ptr<PythonCalls> calls_;
    Reference write_;
};

}  // namespace

std::unique_ptr<BodySink> make_body_sink(const py::object& destination,
                                         std::shared_ptr<PythonCalls> calls) {
    if (destination.is_none()) return std::make_unique<MemorySink>();
    const auto [kind, object] = destination.cast<std::tuple<std::string, py::object>>();
    if (kind == "descriptor") return std::make_unique<DescriptorSink>(object.cast<int>());
    if (kind == "file") return std::make_unique<FileObjectSink>(object, std::move(calls));
    throw py::type_error("a destination is None or a (\"descriptor\" | \"file\", object) tuple");
}

}  // namespace polymux::bindings
