#include <unistd.h>

#include <cerrno>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

#include "file_descriptor.hpp"
#include "polymux/media/source.hpp"
#include "regular_file.hpp"

namespace polymux::media {

namespace {

constexpr auto largest_offset = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());

class FileSource final : public ByteSource {
public:
    FileSource(RegularFile file, std::string path)
        : file_(std::move(file.descriptor)),
          path_(std::move(path)),
          size_bytes_(file.size_bytes),
          identity_{.device = file.device, .inode = file.inode} {}

    // Unbuffered: the demuxer above reads in blocks of at least 32 KiB.
    Result<std::size_t> read(std::span<std::byte> buffer) override {
        for (;;) {
            const ssize_t count = ::pread(file_.get(), buffer.data(), buffer.size(),
                                          static_cast<off_t>(offset_bytes_));
            if (count >= 0) {
                offset_bytes_ += static_cast<std::uint64_t>(count);
                return static_cast<std::size_t>(count);
            }
            if (errno != EINTR) return read_failure(errno);
        }
    }

    Result<void> seek(std::uint64_t offset_bytes) override {
        if (offset_bytes > largest_offset) {
            return file_refusal(ErrorCode::input_unreadable, path_,
                                "the position is too large for a file (got " +
                                    std::to_string(offset_bytes) + " bytes, allowed " +
                                    std::to_string(largest_offset) + ")",
                                EINVAL);
        }
        offset_bytes_ = offset_bytes;
        return {};
    }

    [[nodiscard]] bool seekable() const noexcept override { return true; }
    [[nodiscard]] std::optional<std::uint64_t> size_bytes() const noexcept override {
        return size_bytes_;
    }
    [[nodiscard]] const std::string& name() const noexcept override { return path_; }
    [[nodiscard]] std::string path() const override { return path_; }
    [[nodiscard]] std::optional<FileIdentity> identity() const noexcept override {
        return identity_;
    }

private:
    [[nodiscard]] Error read_failure(int os_errno) const {
        return file_refusal(ErrorCode::input_unreadable, path_,
                            "reading at byte " + std::to_string(offset_bytes_) +
                                " failed: " + std::generic_category().message(os_errno),
                            os_errno);
    }

    FileDescriptor file_;
    std::string path_;
    std::uint64_t size_bytes_;
    FileIdentity identity_;
    std::uint64_t offset_bytes_ = 0;
};

Result<std::unique_ptr<ByteSource>> open_regular(const std::string& path) {
    Result<RegularFile> file = open_regular_file(path);
    if (!file) return std::move(file.error());
    return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(*std::move(file), path));
}

}  // namespace

Result<std::unique_ptr<ByteSource>> open_file(const std::string& path) {
    try {
        return open_regular(path);
    } catch (const std::bad_alloc&) {
        return Error{.code = ErrorCode::out_of_memory,
                     .message = "not enough memory to open the input file"};
    }
}

}  // namespace polymux::media
