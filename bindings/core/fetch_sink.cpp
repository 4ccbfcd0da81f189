#include "fetch_sink.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "python_writer.hpp"

namespace polymux::bindings {
namespace {

constexpr std::size_t block_bytes = 1024 * 1024;

/// Uses blocks, so a growing body is copied only once.
class MemorySink final : public BodySink {
public:
    Result<void> write(std::span<const std::byte> piece) override {
        size_ += piece.size();
        while (!piece.empty()) {
            if (blocks_.empty() || blocks_.back().size() == block_bytes) {
                blocks_.emplace_back();
                // A short body does not reserve a whole block.
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
                return Error{.code = ErrorCode::output_failed,
                             .message = std::string("cannot write the downloaded data: ") +
                                        std::strerror(number),
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
        : calls_(std::move(calls)), writer_(file) {}

    Result<void> write(std::span<const std::byte> piece) override {
        return calls_->call([&] { writer_.write_all(piece); });
    }

private:
    std::shared_ptr<PythonCalls> calls_;
    PythonWriter writer_;
};

}  // namespace

std::unique_ptr<BodySink> make_body_sink(const py::object& destination,
                                         std::shared_ptr<PythonCalls> calls) {
    if (destination.is_none()) return std::make_unique<MemorySink>();
    const auto [kind, object] = destination.cast<std::tuple<std::string, py::object>>();
    if (kind == "descriptor") return std::make_unique<DescriptorSink>(object.cast<int>());
    if (kind == "file") return std::make_unique<FileObjectSink>(object, std::move(calls));
    throw py::type_error(
        "a destination must be None or a (\"descriptor\" | \"file\", object) tuple");
}

}  // namespace polymux::bindings
