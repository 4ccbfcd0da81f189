// Ownership of one file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

namespace polymux {

class FileDescriptor {
public:
    FileDescriptor() = default;
    explicit FileDescriptor(int descriptor) noexcept : descriptor_(descriptor) {}
    FileDescriptor(FileDescriptor&& other) noexcept
        : descriptor_(std::exchange(other.descriptor_, -1)) {}
    FileDescriptor& operator=(FileDescriptor&& other) noexcept {
        if (this != &other) {
            close();
            descriptor_ = std::exchange(other.descriptor_, -1);
        }
        return *this;
    }
    FileDescriptor(const FileDescriptor&) = delete;
    FileDescriptor& operator=(const FileDescriptor&) = delete;
    ~FileDescriptor() { close(); }

    [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
    [[nodiscard]] int get() const noexcept { return descriptor_; }

    /// Gives up ownership without closing.
    [[nodiscard]] int release() noexcept { return std::exchange(descriptor_, -1); }

    /// The result of close(2): network file systems report a failed write only here. 0 if not open.
    int close() noexcept {
        // Linux frees the descriptor even when close is interrupted, so it is never repeated.
        return descriptor_ >= 0 ? ::close(std::exchange(descriptor_, -1)) : 0;
    }

private:
    int descriptor_ = -1;
};

}  // namespace polymux
