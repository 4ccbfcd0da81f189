#include "regular_file.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "path_text.hpp"

namespace polymux {

namespace {

Error missing(const std::string& path, int os_errno) {
    struct stat link{};
    if (::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode)) {
        return file_refusal(ErrorCode::input_not_found, path,
                            "it is a broken symbolic link: the target does not exist", os_errno);
    }
    return file_refusal(
        ErrorCode::input_not_found, path,
        "file not found. Check the path; a relative path starts in the current directory",
        os_errno);
}

Error open_failure(const std::string& path, int os_errno) {
    switch (os_errno) {
        case ENOENT:
            return missing(path, os_errno);
        case ENOTDIR:
            return file_refusal(ErrorCode::input_not_found, path,
                                "a part of the path before the last '/' is not a directory",
                                os_errno);
        case EACCES:
        case EPERM:
            return file_refusal(
                ErrorCode::input_unreadable, path,
                "permission denied: this user may not read the file or enter its directory",
                os_errno);
        case ENAMETOOLONG:
            return file_refusal(ErrorCode::input_unreadable, path,
                                "the path is too long for this system. Change to its directory and "
                                "use a relative path",
                                os_errno);
        case ELOOP:
            return file_refusal(ErrorCode::input_unreadable, path,
                                "the symbolic links in the path form a loop", os_errno);
        case EMFILE:
        case ENFILE:
            return file_refusal(
                ErrorCode::input_unreadable, path,
                "too many files are open. Close some files or raise the limit (ulimit -n)",
                os_errno);
        default:
            return file_refusal(ErrorCode::input_unreadable, path,
                                std::generic_category().message(os_errno), os_errno);
    }
}

std::optional<Error> refuse_unless_regular(const std::string& path, mode_t mode) {
    const auto refuse = [&path](std::string_view reason) {
        return file_refusal(ErrorCode::input_unreadable, path, reason);
    };
    switch (mode & S_IFMT) {
        case S_IFREG:
            return {};
        case S_IFDIR:
            return refuse("it is a directory. Pass the path of one file in it");
        case S_IFIFO:
            return refuse(
                "it is a pipe, which would block. Open it yourself and pass the file object, or "
                "pass '-' to read standard input");
        case S_IFSOCK:
            return refuse(
                "it is a socket. Connect to it yourself and pass a file object of the connection");
        default:
            return refuse(
                "it is a device. Open it yourself and pass the file object, or pass '-' to read "
                "standard input");
    }
}

}  // namespace

Error file_refusal(ErrorCode code, const std::string& path, std::string_view reason,
                   std::optional<int> os_errno) {
    return {.code = code,
            .message = "cannot read " + quoted_path(path) + ": " + std::string(reason),
            .input_name = path,
            .os_errno = os_errno};
}

RegularFile::RegularFile(FileDescriptor opened, const struct stat& status) noexcept
    : descriptor(std::move(opened)),
      size_bytes(static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0))),
      device(status.st_dev),
      inode(status.st_ino),
      modified(status.st_mtim) {}

Result<RegularFile> open_regular_file(const std::string& path) {
    if (path.empty()) {
        return Error{.code = ErrorCode::invalid_argument, .message = "the input path is empty"};
    }
    if (path.find('\0') != std::string::npos) {
        return file_refusal(ErrorCode::invalid_argument, path, "the path contains a null byte");
    }
    struct stat status{};
    // Check before opening: opening a device can have side effects, and a socket cannot be opened
    // at all.
    if (::stat(path.c_str(), &status) != 0) return open_failure(path, errno);
    if (auto refused = refuse_unless_regular(path, status.st_mode)) return *std::move(refused);

    // Check again after opening, because another file may have taken the name. Without O_NONBLOCK,
    // opening a pipe would block this call.
    FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!file.is_open()) return open_failure(path, errno);
    if (::fstat(file.get(), &status) != 0) return open_failure(path, errno);
    if (auto refused = refuse_unless_regular(path, status.st_mode)) return *std::move(refused);

    // Only advice; a failure does no harm.
    static_cast<void>(::posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL));
    return RegularFile(std::move(file), status);
}

Result<RegularFile> share_regular_file(int descriptor, const std::string& name) {
    FileDescriptor file(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    struct stat status{};
    if (!file.is_open() || ::fstat(file.get(), &status) != 0) return open_failure(name, errno);
    if (auto refused = refuse_unless_regular(name, status.st_mode)) return *std::move(refused);
    return RegularFile(std::move(file), status);
}

}  // namespace polymux
