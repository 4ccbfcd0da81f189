#include "chunked_bytes.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace polymux::bindings {
namespace {

constexpr std::size_t chunk_bytes = 1024 * 1024;

}  // namespace

void ChunkedBytes::append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        if (chunks_.empty() || chunks_.back().size() == chunk_bytes) {
            chunks_.emplace_back();
        }
        auto& chunk = chunks_.back();
        const auto part = bytes.first(std::min(bytes.size(), chunk_bytes - chunk.size()));
        chunk.insert(chunk.end(), part.begin(), part.end());
        size_ += part.size();
        bytes = bytes.subspan(part.size());
    }
}

bool ChunkedBytes::patch(std::size_t offset, std::span<const std::byte> bytes) {
    if (offset > size_ || bytes.size() > size_ - offset) {
        return false;
    }
    while (!bytes.empty()) {
        auto& chunk = chunks_[offset / chunk_bytes];
        const std::size_t begin = offset % chunk_bytes;
        const auto part = bytes.first(std::min(bytes.size(), chunk.size() - begin));
        std::ranges::copy(part, chunk.begin() + static_cast<std::ptrdiff_t>(begin));
        offset += part.size();
        bytes = bytes.subspan(part.size());
    }
    return true;
}

Reference ChunkedBytes::take_python_bytes() {
    PyObject* const joined = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size_));
    if (joined == nullptr) {
        PyErr_Clear();
        return {};
    }
    Reference owner(py::reinterpret_steal<py::object>(joined));
    char* position = PyBytes_AS_STRING(joined);
    // The object is not shared yet, so its bytes may be filled without the GIL.
    without_gil([this, &position] {
        while (!chunks_.empty()) {
            const auto& chunk = chunks_.front();
            std::memcpy(position, chunk.data(), chunk.size());
            position += chunk.size();
            chunks_.pop_front();
        }
        size_ = 0;
    });
    return owner;
}

Result<void> ChunkedSink::write(std::span<const std::byte> bytes) {
    try {
        bytes_->append(bytes);
    } catch (const std::bad_alloc&) {
        return Error{
            .code = ErrorCode::out_of_memory,
            .message =
                "not enough memory for the output. Pass a destination to write it to a file"};
    }
    return {};
}

Result<void> ChunkedSink::patch(std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
    if (!bytes_->patch(offset_bytes, bytes)) {
        return Error{.code = ErrorCode::internal,
                     .message = "a patch is past the end of the output"};
    }
    return {};
}

}  // namespace polymux::bindings
