#include "media/destination.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "path_text.hpp"

namespace polymux::media {

namespace {

std::string free_space(int file) {
    struct statvfs status{};
    if (::fstatvfs(file, &status) != 0) return "";
    const double mebibytes =
        static_cast<double>(status.f_bavail) * static_cast<double>(status.f_frsize) / (1024 * 1024);
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), " (%.1f MiB free)", mebibytes);
    return text.data();
}

std::optional<Error> refuse_by_type(const Destination& destination, mode_t mode) {
    const auto refuse = [&destination](std::string_view reason) {
        return destination.error(ErrorCode::output_refused, reason);
    };
    switch (mode & S_IFMT) {
        case S_IFREG:
            return {};
        case S_IFDIR:
            return refuse("it is a directory. Pass the path of the file to write");
        case S_IFLNK:
            return refuse(
                "it is a symbolic link, which is neither followed nor replaced. Pass the path that "
                "it points to");
        case S_IFIFO:
            return refuse(
                "it is a pipe. Open it yourself and pass the file object, or pass '-' to write to "
                "standard output");
        case S_IFSOCK:
            return refuse(
                "it is a socket. Connect to it yourself and pass a file object of the connection");
        default:
            return refuse(
                "it is a device. Open it yourself and pass the file object, or pass '-' to write "
                "to standard output");
    }
}

/// Follows a link such as /dev/stdout, to give the advice for the device it points to.
mode_t type_behind(const Destination& destination, mode_t mode) {
    struct stat target{};
    if (S_ISLNK(mode) &&
        ::fstatat(destination.folder.get(), destination.name.c_str(), &target, 0) == 0 &&
        !S_ISREG(target.st_mode) && !S_ISDIR(target.st_mode)) {
        return target.st_mode;
    }
    return mode;
}

}  // namespace

Error Destination::error(ErrorCode code, std::string_view reason,
                         std::optional<int> os_errno) const {
    return {.code = code,
            .message = "cannot write " + quoted_path(path) + ": " + std::string(reason),
            .os_errno = os_errno};
}

Error system_failure(const Destination& destination, int os_errno, int space_of) {
    std::string reason;
    switch (os_errno) {
        case ENOSPC:
            reason = "no space is left on the disk" + free_space(space_of) +
                     ". Free some space or choose another directory";
            break;
        case EDQUOT:
            reason =
                "the disk quota of this user is used up. Free some space or choose another "
                "directory";
            break;
        case EFBIG:
            reason =
                "the file would exceed the maximum file size (ulimit -f, or the limit of the file "
                "system)";
            break;
        case EACCES:
        case EPERM:
            reason =
                "permission denied: this user may not create or replace files in its directory";
            break;
        case EROFS:
            reason = "the file system is read-only";
            break;
        case ENOENT:
            reason = "its directory does not exist. Create it first";
            break;
        case ENOTDIR:
            reason = "a part of the path before the last '/' is not a directory";
            break;
        case ENAMETOOLONG:
            reason = "the name or the path is too long for this system";
            break;
        case EMFILE:
        case ENFILE:
            reason = "too many files are open. Close some files or raise the limit (ulimit -n)";
            break;
        default:
            reason = std::generic_category().message(os_errno);
            break;
    }
    return destination.error(ErrorCode::output_failed, reason, os_errno);
}

Result<Destination> open_destination(const std::string& path, const FileSinkOptions& options) {
    if (path.empty()) {
        return Error{.code = ErrorCode::invalid_argument, .message = "the output path is empty"};
    }
    Destination destination{.path = path, .name = {}, .folder = {}, .options = options};
    if (path.find('\0') != std::string::npos) {
        return destination.error(ErrorCode::invalid_argument, "the path contains a null byte");
    }
    const std::size_t slash = path.rfind('/');
    destination.name = slash == std::string::npos ? path : path.substr(slash + 1);
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    if (destination.name.empty() || destination.name == "." || destination.name == "..") {
        return *refuse_by_type(destination, S_IFDIR);
    }
    // O_PATH: a writable folder need not be readable.
    destination.folder = FileDescriptor(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!destination.folder.is_open()) return system_failure(destination, errno, -1);
    return destination;
}

Result<std::optional<struct stat>> examine(const Destination& destination) {
    const int folder = destination.folder.get();
    const char* name = destination.name.c_str();
    struct stat existing{};
    if (::fstatat(folder, name, &existing, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) return std::optional<struct stat>{};
        return system_failure(destination, errno, folder);
    }
    if (auto refused = refuse_by_type(destination, type_behind(destination, existing.st_mode))) {
        return *std::move(refused);
    }
    const FileIdentity identity{.device = existing.st_dev, .inode = existing.st_ino};
    const FileSinkOptions& options = destination.options;
    if (options.input == identity || options.other_input == identity) {
        return destination.error(ErrorCode::output_refused,
                                 "it is the input file itself. Choose another name");
    }
    if (!destination.options.overwrite) {
        return destination.error(ErrorCode::output_exists,
                                 "it already exists. Allow overwriting or use another name",
                                 EEXIST);
    }
    // Renaming over a read-only file would succeed, but would ignore that its write permission was
    // removed on purpose. The mode is checked too, because the superuser may write to any file.
    constexpr mode_t writable = S_IWUSR | S_IWGRP | S_IWOTH;
    if ((existing.st_mode & writable) == 0 || ::faccessat(folder, name, W_OK, AT_EACCESS) != 0) {
        return destination.error(ErrorCode::output_failed,
                                 "the existing file is read-only. Delete it or make it writable",
                                 EACCES);
    }
    return std::optional<struct stat>(existing);
}

}  // namespace polymux::media
