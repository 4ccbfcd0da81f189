#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

#include "media/file_descriptor.hpp"
#include "media/path_text.hpp"
#include "polymux/media/source.hpp"

namespace polymux::media {

namespace {

constexpr auto largest_offset = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());

Error refusal(ErrorCode code, const std::string& path, std::string_view reason,
              std::optional<int> os_errno = {}) {
    return {.code = code,
            .message = "cannot read " + quoted_path(path) + ": " + std::string(reason),
            .input_name = path,
            .os_errno = os_errno};
}

Error missing(const std::string& path, int os_errno) {
    struct stat link{};
    if (::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode)) {
        return refusal(ErrorCode::input_not_found, path,
                       "it is a symbolic link to something that does not exist", os_errno);
    }
    return refusal(ErrorCode::input_not_found, path,
                   "there is no such file; check the name, and the folder it is taken from",
                   os_errno);
}

Error open_failure(const std::string& path, int os_errno) {
    switch (os_errno) {
        case ENOENT:
            return missing(path, os_errno);
        case ENOTDIR:
            return refusal(ErrorCode::input_not_found, path,
                           "a part of the path before the last '/' is not a folder", os_errno);
        case EACCES:
        case EPERM:
            return refusal(ErrorCode::input_unreadable, path,
                           "permission denied; this user may not read the file or enter its folder",
                           os_errno);
        case ENAMETOOLONG:
            return refusal(ErrorCode::input_unreadable, path,
                           "the path is too long for this system; go to its folder and use a "
                           "relative path",
                           os_errno);
        case ELOOP:
            return refusal(ErrorCode::input_unreadable, path,
                           "its symbolic links lead round in a circle", os_errno);
        case EMFILE:
        case ENFILE:
            return refusal(ErrorCode::input_unreadable, path,
                           "too many files are open; close some or raise the limit (ulimit -n)",
                           os_errno);
        default:
            return refusal(ErrorCode::input_unreadable, path,
                           std::generic_category().message(os_errno), os_errno);
    }
}

std::optional<Error> refuse_unless_regular(const std::string& path, mode_t mode) {
    const auto refuse = [&path](std::string_view reason) {
        return refusal(ErrorCode::input_unreadable, path, reason);
    };
    switch (mode & S_IFMT) {
        case S_IFREG:
            return {};
        case S_IFDIR:
            return refuse("it is a folder; give the path of one file in it");
        case S_IFIFO:
            return refuse(
                "it is a pipe, which would block; open it yourself and pass the file object, or "
                "give '-' to read standard input");
        case S_IFSOCK:
            return refuse("it is a socket; connect to it yourself and pass its content");
        default:
            return refuse(
                "it is a device; open it yourself and pass the file object, or give '-' to read "
                "standard input");
    }
}

class FileSource final : public ByteSource {
public:
    FileSource(FileDescriptor file, std::string path, const struct stat& status)
        : file_(std::move(file)),
          path_(std::move(path)),
          size_bytes_(static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0))),
          identity_{.device = status.st_dev, .inode = status.st_ino} {}

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
            return refusal(ErrorCode::input_unreadable, path_,
                           "a position in it is beyond what a file can hold", EINVAL);
        }
        offset_bytes_ = offset_bytes;
        return {};
    }

    [[nodiscard]] bool seekable() const noexcept override { return true; }
    [[nodiscard]] std::optional<std::uint64_t> size_bytes() const noexcept override {
        return size_bytes_;
    }
    [[nodiscard]] const std::string& name() const noexcept override { return path_; }
    [[nodiscard]] std::optional<FileIdentity> identity() const noexcept override {
        return identity_;
    }

private:
    [[nodiscard]] Error read_failure(int os_errno) const {
        return refusal(ErrorCode::input_unreadable, path_,
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
    if (path.empty()) {
        return Error{.code = ErrorCode::invalid_argument, .message = "the input path is empty"};
    }
    if (path.find('\0') != std::string::npos) {
        return refusal(ErrorCode::invalid_argument, path,
                       "the path holds a zero byte, which no path can");
    }
    struct stat status{};
    // Looked at before it is opened: merely opening a device can act on it, and a socket cannot be
    // opened at all.
    if (::stat(path.c_str(), &status) != 0) return open_failure(path, errno);
    if (auto refused = refuse_unless_regular(path, status.st_mode)) return *std::move(refused);

    // Looked at again once open, because another file may have taken the name; without
    // O_NONBLOCK a pipe that did so would hang this call.
    FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!file.is_open()) return open_failure(path, errno);
    if (::fstat(file.get(), &status) != 0) return open_failure(path, errno);
    if (auto refused = refuse_unless_regular(path, status.st_mode)) return *std::move(refused);

    // Advice only: failure costs nothing.
    static_cast<void>(::posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL));
    return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(std::move(file), path, status));
}

}  // namespace

Result<std::unique_ptr<ByteSource>> open_file(const std::string& path) {
    try {
        return open_regular(path);
    } catch (const std::bad_alloc&) {
        return Error{.code = ErrorCode::out_of_memory, .message = "out of memory"};
    }
}

}  // namespace polymux::media
