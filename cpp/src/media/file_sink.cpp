#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

#include "media/file_descriptor.hpp"
#include "media/path_text.hpp"
#include "polymux/media/sink.hpp"

namespace polymux::media {

namespace {

constexpr std::size_t buffer_bytes = 64 * 1024;
// The rest of the temporary name adds 23 bytes: together well below any file system's limit.
constexpr std::size_t temporary_prefix_bytes = 32;
constexpr int temporary_attempts = 100;

/// Where the output shall appear. The folder is held open, so that nobody can redirect the output
/// by replacing a folder of the path while the conversion runs.
struct Destination {
    std::string path;
    std::string name;  ///< Last component of the path.
    FileDescriptor folder;
    FileSinkOptions options;

    [[nodiscard]] Error error(ErrorCode code, std::string_view reason,
                              std::optional<int> os_errno = {}) const {
        return {.code = code,
                .message = "cannot write " + quoted_path(path) + ": " + std::string(reason),
                .os_errno = os_errno};
    }
};

std::string free_space(int file) {
    struct statvfs status{};
    if (::fstatvfs(file, &status) != 0) return "";
    const double mebibytes =
        static_cast<double>(status.f_bavail) * static_cast<double>(status.f_frsize) / (1024 * 1024);
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), " (%.1f MiB free)", mebibytes);
    return text.data();
}

/// The failure of any call on the temporary file or its folder. `space_of` is open on the file
/// system written to.
Error system_failure(const Destination& destination, int os_errno, int space_of) {
    std::string reason;
    switch (os_errno) {
        case ENOSPC:
            reason = "no space is left on the disk" + free_space(space_of) +
                     "; free some or choose another folder";
            break;
        case EDQUOT:
            reason = "this user's disk quota is used up; free some space or choose another folder";
            break;
        case EFBIG:
            reason =
                "the file would be larger than this system allows (ulimit -f, or the file system's "
                "own limit)";
            break;
        case EACCES:
        case EPERM:
            reason = "permission denied; this user may not create or replace files in that folder";
            break;
        case EROFS:
            reason = "the file system is read-only";
            break;
        case ENOENT:
            reason = "its folder does not exist; create it first";
            break;
        case ENOTDIR:
            reason = "a part of the path before the last '/' is not a folder";
            break;
        case ENAMETOOLONG:
            reason = "the name or the path is too long for this system";
            break;
        case EMFILE:
        case ENFILE:
            reason = "too many files are open; close some or raise the limit (ulimit -n)";
            break;
        default:
            reason = std::generic_category().message(os_errno);
            break;
    }
    return destination.error(ErrorCode::output_failed, reason, os_errno);
}

std::optional<Error> refuse_by_type(const Destination& destination, mode_t mode) {
    const auto refuse = [&destination](std::string_view reason) {
        return destination.error(ErrorCode::output_refused, reason);
    };
    switch (mode & S_IFMT) {
        case S_IFREG:
            return {};
        case S_IFDIR:
            return refuse("it is a folder; give the path of the file to write");
        case S_IFLNK:
            return refuse(
                "it is a symbolic link, which is neither followed nor replaced; give the path it "
                "leads to");
        case S_IFIFO:
            return refuse(
                "it is a pipe; open it yourself and pass the file object, or give '-' to write to "
                "standard output");
        case S_IFSOCK:
            return refuse("it is a socket; connect to it yourself and pass the stream");
        default:
            return refuse(
                "it is a device; open it yourself and pass the file object, or give '-' to write "
                "to standard output");
    }
}

/// A link such as /dev/stdout deserves the advice for the device behind it.
mode_t type_behind(const Destination& destination, mode_t mode) {
    struct stat target{};
    if (S_ISLNK(mode) &&
        ::fstatat(destination.folder.get(), destination.name.c_str(), &target, 0) == 0 &&
        !S_ISREG(target.st_mode) && !S_ISDIR(target.st_mode)) {
        return target.st_mode;
    }
    return mode;
}

/// What stands at the destination now: nothing, or a regular file that may be replaced. Anything
/// else is the error.
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
    if (destination.options.input == identity) {
        return destination.error(ErrorCode::output_refused,
                                 "it is the input itself; choose another name");
    }
    if (!destination.options.overwrite) {
        return destination.error(ErrorCode::output_exists,
                                 "it exists already; allow overwriting or choose another name",
                                 EEXIST);
    }
    // Renaming over it would succeed, but whoever took the write permission away meant it to stay;
    // the mode is looked at too because the superuser may write to anything.
    constexpr mode_t writable = S_IWUSR | S_IWGRP | S_IWOTH;
    if ((existing.st_mode & writable) == 0 || ::faccessat(folder, name, W_OK, AT_EACCESS) != 0) {
        return destination.error(ErrorCode::output_failed,
                                 "the existing file is read-only; remove it or allow writing to it",
                                 EACCES);
    }
    return std::optional<struct stat>(existing);
}

/// Eight characters that no file system folds into one another.
std::string random_suffix() {
    constexpr std::string_view alphabet = "0123456789abcdefghijklmnopqrstuv";
    std::uint64_t value = 0;
    if (::getrandom(&value, sizeof value, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof value)) {
        // Too early after boot, or forbidden by a sandbox. Names only have to differ, not to be
        // secret: O_EXCL protects against whoever guesses one.
        value =
            static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
        value =
            (value ^ static_cast<std::uint64_t>(::getpid()) << 40U) * 0x9E37'79B9'7F4A'7C15U >> 8U;
    }
    std::string suffix;
    for (int count = 0; count < 8; ++count, value >>= 5U) suffix += alphabet[value & 31U];
    return suffix;
}

std::string temporary_name(const std::string& name) {
    std::size_t length = std::min(name.size(), temporary_prefix_bytes);
    // Some file systems take only whole UTF-8 sequences.
    while (length < name.size() && length > 0 &&
           (static_cast<unsigned char>(name[length]) & 0xC0U) == 0x80U) {
        --length;
    }
    return "." + name.substr(0, length) + ".polymux-" + random_suffix() + ".part";
}

/// The temporary file: gone when this is destroyed, unless it was renamed.
class TemporaryFile {
public:
    TemporaryFile() = default;
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    ~TemporaryFile() {
        // A forked copy of this object must not take the file away from the process that writes.
        if (exists_ && ::getpid() == process_) ::unlinkat(folder_, name_.c_str(), 0);
    }

    Result<void> create(const Destination& destination,
                        const std::optional<struct stat>& replaced) {
        folder_ = destination.folder.get();
        // Less open than the file it replaces at no time.
        const mode_t mode = replaced ? S_IRUSR | S_IWUSR : 0666;
        for (int attempt = 0; attempt < temporary_attempts; ++attempt) {
            name_ = temporary_name(destination.name);
            file_ = FileDescriptor(::openat(
                folder_, name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
            if (file_.is_open()) {
                exists_ = true;
                process_ = ::getpid();
                return replaced ? take_over(destination, *replaced) : Result<void>{};
            }
            if (errno != EEXIST && errno != EINTR) break;
        }
        return system_failure(destination, errno, folder_);
    }

    [[nodiscard]] FileDescriptor& file() noexcept { return file_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    void keep() noexcept { exists_ = false; }

private:
    /// Owner and group are kept where this user may; the mode always, or the output would be more
    /// or less private than the file before it.
    Result<void> take_over(const Destination& destination, const struct stat& replaced) {
        struct stat own{};
        const bool known = ::fstat(file_.get(), &own) == 0;
        bool group_kept = known && own.st_gid == replaced.st_gid;
        if (known && own.st_uid != replaced.st_uid) {
            group_kept = ::fchown(file_.get(), replaced.st_uid, replaced.st_gid) == 0 || group_kept;
        }
        if (!group_kept) {
            group_kept =
                ::fchown(file_.get(), std::numeric_limits<uid_t>::max(), replaced.st_gid) == 0;
        }
        mode_t mode = replaced.st_mode & 0777U;
        // The group bits were meant for another group.
        if (!group_kept) mode &= ~static_cast<mode_t>(S_IRWXG);
        if (::fchmod(file_.get(), mode) != 0) {
            return system_failure(destination, errno, file_.get());
        }
        return {};
    }

    int folder_ = -1;  ///< Of the Destination, which outlives this.
    std::string name_;
    FileDescriptor file_;
    bool exists_ = false;
    pid_t process_ = -1;
};

class FileSink final : public ByteSink {
public:
    explicit FileSink(Destination destination) : destination_(std::move(destination)) {
        buffer_.reserve(buffer_bytes);
    }

    Result<void> open() {
        const auto existing = examine(destination_);
        if (!existing) return existing.error();
        return temporary_.create(destination_, *existing);
    }

    Result<void> write(std::span<const std::byte> bytes) override {
        if (auto ready = check_usable(); !ready) return ready;
        if (buffer_.size() + bytes.size() > buffer_bytes) {
            if (auto flushed = flush(); !flushed) return flushed;
        }
        if (bytes.size() >= buffer_bytes) {
            if (auto written = write_at(flushed_bytes_, bytes); !written) return written;
            flushed_bytes_ += bytes.size();
            return {};
        }
        buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
        return {};
    }

    Result<void> patch(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override {
        if (auto flushed = flush(); !flushed) return flushed;
        if (offset_bytes > flushed_bytes_ || bytes.size() > flushed_bytes_ - offset_bytes) {
            return destination_.error(ErrorCode::internal,
                                      "a patch lies outside of what was written");
        }
        return write_at(offset_bytes, bytes);
    }

    [[nodiscard]] bool can_patch() const noexcept override { return true; }

    Result<void> commit() override {
        if (auto flushed = flush(); !flushed) return flushed;
        // From here on this sink takes no more bytes, whatever happens.
        state_ = State::failed;
        if (auto synced = sync_file(); !synced) return synced;
        if (temporary_.file().close() != 0) return fail(errno);
        // The destination may have changed since the sink was opened.
        if (const auto existing = examine(destination_); !existing) return existing.error();
        if (auto renamed = rename(); !renamed) return renamed;
        state_ = State::committed;
        return sync_folder();
    }

private:
    enum class State : std::uint8_t { writing, failed, committed };

    [[nodiscard]] Result<void> check_usable() const {
        if (state_ == State::writing) return {};
        if (state_ == State::committed) {
            return destination_.error(ErrorCode::internal, "it was committed already");
        }
        return destination_.error(ErrorCode::output_failed, "writing it failed before");
    }

    Error fail(int os_errno) {
        state_ = State::failed;
        const int space_of =
            temporary_.file().is_open() ? temporary_.file().get() : destination_.folder.get();
        return system_failure(destination_, os_errno, space_of);
    }

    Result<void> flush() {
        if (auto ready = check_usable(); !ready) return ready;
        if (auto written = write_at(flushed_bytes_, buffer_); !written) return written;
        flushed_bytes_ += buffer_.size();
        buffer_.clear();
        return {};
    }

    Result<void> write_at(std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            const ssize_t count = ::pwrite(temporary_.file().get(), bytes.data(), bytes.size(),
                                           static_cast<off_t>(offset_bytes));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return fail(errno);
            if (count == 0) return fail(EIO);
            offset_bytes += static_cast<std::uint64_t>(count);
            bytes = bytes.subspan(static_cast<std::size_t>(count));
        }
        return {};
    }

    Result<void> sync_file() {
        while (::fsync(temporary_.file().get()) != 0) {
            if (errno == EINTR) continue;
            if (errno == EINVAL) break;  // A file system without it.
            return fail(errno);
        }
        return {};
    }

    Result<void> rename() {
        const int folder = destination_.folder.get();
        const char* from = temporary_.name().c_str();
        const char* to = destination_.name.c_str();
        const bool done = destination_.options.overwrite ? ::renameat(folder, from, folder, to) == 0
                                                         : rename_to_new(folder, from, to);
        if (done) {
            temporary_.keep();
            return {};
        }
        if (errno == EEXIST && !destination_.options.overwrite) {
            return destination_.error(ErrorCode::output_exists,
                                      "it has come into existence meanwhile; it was left alone",
                                      EEXIST);
        }
        return fail(errno);
    }

    /// Fails with EEXIST when `to` exists. Not every file system knows each of the ways.
    static bool rename_to_new(int folder, const char* from, const char* to) {
        if (::renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0) return true;
        if (errno != EINVAL && errno != ENOSYS) return false;
        if (::linkat(folder, from, folder, to, 0) == 0) {
            ::unlinkat(folder, from, 0);
            return true;
        }
        if (errno == EEXIST) return false;
        // No hard links either: the destination was examined a moment ago, which must do.
        return ::renameat(folder, from, folder, to) == 0;
    }

    Result<void> sync_folder() {
        // A folder that may be written but not listed cannot be opened for this: its entry is then
        // as lasting as the file system makes it.
        const FileDescriptor folder(
            ::openat(destination_.folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!folder.is_open()) return {};
        while (::fsync(folder.get()) != 0) {
            if (errno == EINTR) continue;
            if (errno == EINVAL) break;
            const int os_errno = errno;
            return destination_.error(
                ErrorCode::output_failed,
                "it is complete, but its folder could not be synced to the disk: " +
                    std::generic_category().message(os_errno),
                os_errno);
        }
        return {};
    }

    Destination destination_;
    TemporaryFile temporary_;
    std::vector<std::byte> buffer_;
    std::uint64_t flushed_bytes_ = 0;
    State state_ = State::writing;
};

Result<std::unique_ptr<ByteSink>> create_sink(const std::string& path,
                                              const FileSinkOptions& options) {
    if (path.empty()) {
        return Error{.code = ErrorCode::invalid_argument, .message = "the output path is empty"};
    }
    Destination destination{.path = path, .name = {}, .folder = {}, .options = options};
    if (path.find('\0') != std::string::npos) {
        return destination.error(ErrorCode::invalid_argument,
                                 "the path holds a zero byte, which no path can");
    }
    const std::size_t slash = path.rfind('/');
    destination.name = slash == std::string::npos ? path : path.substr(slash + 1);
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    if (destination.name.empty() || destination.name == "." || destination.name == "..") {
        return *refuse_by_type(destination, S_IFDIR);
    }
    // O_PATH: a folder that may be written to need not be readable.
    destination.folder = FileDescriptor(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!destination.folder.is_open()) return system_failure(destination, errno, -1);

    auto sink = std::make_unique<FileSink>(std::move(destination));
    if (auto opened = sink->open(); !opened) return std::move(opened.error());
    return std::unique_ptr<ByteSink>(std::move(sink));
}

}  // namespace

Result<std::unique_ptr<ByteSink>> create_file_sink(const std::string& path,
                                                   const FileSinkOptions& options) {
    try {
        return create_sink(path, options);
    } catch (const std::bad_alloc&) {
        return Error{.code = ErrorCode::out_of_memory, .message = "out of memory"};
    }
}

}  // namespace polymux::media
