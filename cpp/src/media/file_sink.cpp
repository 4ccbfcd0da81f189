#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

#include "file_descriptor.hpp"
#include "media/destination.hpp"
#include "polymux/media/sink.hpp"
#include "polymux/pool.hpp"

namespace polymux::media {

namespace {

constexpr std::size_t sink_buffer_bytes = 64 * 1024;
// The rest of the temporary name adds 23 bytes. The sum is well below any file system's limit.
constexpr std::size_t temporary_prefix_bytes = 32;
constexpr int temporary_attempts = 100;

/// Eight characters that stay distinct on case-insensitive file systems.
std::string random_suffix() {
    constexpr std::string_view alphabet = "0123456789abcdefghijklmnopqrstuv";
    std::uint64_t value = 0;
    if (::getrandom(&value, sizeof value, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof value)) {
        // Random bytes are not available early after boot, or blocked by a sandbox. Names only have
        // to differ; they need not be secret, because O_EXCL protects against guessed names.
        const auto time = std::chrono::steady_clock::now().time_since_epoch().count();
        value = static_cast<std::uint64_t>(time) ^ (static_cast<std::uint64_t>(::getpid()) << 20U);
    }
    std::string suffix;
    for (int count = 0; count < 8; ++count, value >>= 5U) suffix += alphabet[value & 31U];
    return suffix;
}

std::string temporary_name(const std::string& name) {
    std::size_t length = std::min(name.size(), temporary_prefix_bytes);
    // Some file systems accept only complete UTF-8 sequences.
    while (length < name.size() && length > 0 &&
           (static_cast<unsigned char>(name[length]) & 0xC0U) == 0x80U) {
        --length;
    }
    return std::string(".").append(name, 0, length) + ".polymux-" + random_suffix() + ".part";
}

/// The temporary file. The destructor deletes it, unless it was renamed.
class TemporaryFile {
public:
    TemporaryFile() = default;
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    ~TemporaryFile() {
        // A forked copy of this object must not delete the file of the writing process.
        if (exists_ && ::getpid() == process_) ::unlinkat(folder_, name_.c_str(), 0);
    }

    Result<void> create(const Destination& destination,
                        const std::optional<struct stat>& replaced) {
        folder_ = destination.folder.get();
        // Never more accessible than the file that it replaces.
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
    /// Copies owner and group if this user may, and the mode always; otherwise access to the output
    /// would differ from the replaced file.
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
        // Otherwise the group bits would give rights to a group that had none.
        if (!group_kept) mode &= ~static_cast<mode_t>(S_IRWXG);
        if (::fchmod(file_.get(), mode) != 0) {
            return system_failure(destination, errno, file_.get());
        }
        return {};
    }

    int folder_ = -1;  ///< Owned by the Destination, which outlives this object.
    std::string name_;
    FileDescriptor file_;
    bool exists_ = false;
    pid_t process_ = -1;
};

class FileSink final : public ByteSink {
public:
    explicit FileSink(Destination destination) : destination_(std::move(destination)) {
        buffer_.reserve(sink_buffer_bytes);
    }

    Result<void> open() {
        const auto existing = examine(destination_);
        if (!existing) return existing.error();
        return temporary_.create(destination_, *existing);
    }

    Result<void> write(std::span<const std::byte> bytes) override {
        if (auto ready = check_usable(); !ready) return ready;
        if (buffer_.size() + bytes.size() > sink_buffer_bytes) {
            if (auto flushed = flush(); !flushed) return flushed;
        }
        if (bytes.size() >= sink_buffer_bytes) {
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
            return destination_.error(ErrorCode::internal, "a patch is outside the written range");
        }
        return write_at(offset_bytes, bytes);
    }

    [[nodiscard]] bool can_patch() const noexcept override { return true; }

    Result<std::size_t> read_back(std::uint64_t offset_bytes,
                                  std::span<std::byte> buffer) override {
        if (auto flushed = flush(); !flushed) return flushed.error();
        for (;;) {
            const ssize_t count = ::pread(temporary_.file().get(), buffer.data(), buffer.size(),
                                          static_cast<off_t>(offset_bytes));
            if (count >= 0) return static_cast<std::size_t>(count);
            if (errno != EINTR) return fail(errno);
        }
    }

    [[nodiscard]] bool can_read_back() const noexcept override { return true; }

    Result<void> commit() override {
        if (auto flushed = flush(); !flushed) return flushed;
        // From here on, this sink accepts no more bytes.
        state_ = State::failed;
        const Pool::Blocking waiting_for_the_disk;
        if (auto synced = sync_file(); !synced) return synced;
        if (temporary_.file().close() != 0) return fail(errno);
        // The destination may have changed since the sink was opened.
        if (const auto existing = examine(destination_); !existing) return existing.error();
        if (auto renamed = rename(); !renamed) return renamed;
        state_ = State::committed;
        return destination_.options.sync_folder ? sync_folder() : Result<void>();
    }

private:
    enum class State : std::uint8_t { writing, failed, committed };

    [[nodiscard]] Result<void> check_usable() const {
        if (state_ == State::writing) return {};
        if (state_ == State::committed) {
            return destination_.error(ErrorCode::internal, "it was already committed");
        }
        return destination_.error(ErrorCode::output_failed, "an earlier write to it failed");
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
            if (errno == EINVAL) break;  // The file system does not support this.
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
            return destination_.error(
                ErrorCode::output_exists,
                "it already exists: another program has created it in the meantime. The existing "
                "file was not changed",
                EEXIST);
        }
        return fail(errno);
    }

    /// Fails with EEXIST if `to` exists. File systems differ in which of these ways they support.
    static bool rename_to_new(int folder, const char* from, const char* to) {
        if (::renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0) return true;
        if (errno != EINVAL && errno != ENOSYS) return false;
        if (::linkat(folder, from, folder, to, 0) == 0) {
            ::unlinkat(folder, from, 0);
            return true;
        }
        if (errno == EEXIST) return false;
        // Hard links are not supported either. The check of the destination a moment ago has to
        // suffice.
        return ::renameat(folder, from, folder, to) == 0;
    }

    Result<void> sync_folder() {
        // A folder that may be written but not listed cannot be opened for this. The entry is then
        // as durable as the file system makes it.
        const FileDescriptor folder(
            ::openat(destination_.folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!folder.is_open()) return {};
        while (::fsync(folder.get()) != 0) {
            if (errno == EINTR) continue;
            if (errno == EINVAL) break;
            const int os_errno = errno;
            return destination_.error(
                ErrorCode::output_failed,
                "the file is complete, but its directory could not be synced to the disk: " +
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
    auto destination = open_destination(path, options);
    if (!destination) return destination.error();
    auto sink = std::make_unique<FileSink>(*std::move(destination));
    if (auto opened = sink->open(); !opened) return std::move(opened.error());
    return std::unique_ptr<ByteSink>(std::move(sink));
}

}  // namespace

Result<std::unique_ptr<ByteSink>> create_file_sink(const std::string& path,
                                                   const FileSinkOptions& options) {
    try {
        return create_sink(path, options);
    } catch (const std::bad_alloc&) {
        return Error{.code = ErrorCode::out_of_memory,
                     .message = "not enough memory to create the output file"};
    }
}

}  // namespace polymux::media
