#include "song/segment_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "path_text.hpp"
#include "polymux/pool.hpp"
#include "regular_file.hpp"

namespace polymux::song {

namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20U;
constexpr mode_t new_file_mode = 0644;

/// If the file system does not support syncing, there is nothing to wait for.
bool sync(int descriptor) noexcept {
    while (::fsync(descriptor) != 0) {
        if (errno == EINVAL) break;
        if (errno != EINTR) return false;
    }
    return true;
}

}  // namespace

AtomicFile::AtomicFile(std::string folder, std::string name)
    : folder_(std::move(folder)), name_(std::move(name)) {
    buffer_.reserve(buffer_bytes);
}

AtomicFile::~AtomicFile() {
    if (unfinished_) ::unlink(unfinished_path().c_str());
}

Result<std::unique_ptr<AtomicFile>> AtomicFile::create(const std::string& folder,
                                                       const std::string& name) {
    std::unique_ptr<AtomicFile> made(new AtomicFile(folder, name));
    const std::string path = made->unfinished_path();
    // Another process may have the old file open; deleting the name leaves it usable there.
    ::unlink(path.c_str());
    made->file_ = FileDescriptor(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, new_file_mode));
    if (!made->file_.is_open()) return made->failure(errno);
    made->unfinished_ = true;
    return made;
}

Result<void> AtomicFile::append(std::span<const std::byte> bytes) {
    if (buffer_.size() + bytes.size() > buffer_bytes) {
        if (auto flushed = flush(); !flushed) return flushed;
    }
    if (bytes.size() < buffer_bytes) {
        buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
        return {};
    }
    if (auto written = write_at(flushed_bytes_, bytes); !written) return written;
    flushed_bytes_ += bytes.size();
    return {};
}

Result<void> AtomicFile::replace_front(std::span<const std::byte> bytes) {
    if (auto flushed = flush(); !flushed) return flushed;
    return write_at(0, bytes);
}

Result<void> AtomicFile::commit() {
    if (auto flushed = flush(); !flushed) return flushed;
    const Pool::Blocking waiting_for_the_disk;
    if (!sync(file_.get()) || file_.close() != 0) return failure(errno);
    const std::string path = folder_ + "/" + name_;
    if (::rename(unfinished_path().c_str(), path.c_str()) != 0) return failure(errno);
    unfinished_ = false;
    const FileDescriptor folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder.is_open() || !sync(folder.get())) return failure(errno);
    return {};
}

std::string AtomicFile::unfinished_path() const {
    return folder_ + "/" + name_ + std::string(unfinished_ending);
}

Error AtomicFile::failure(int os_errno) const {
    const std::string path = folder_ + "/" + name_;
    return Error{.code = ErrorCode::output_failed,
                 .message = "cannot write " + quoted_path(path) + ": " +
                            std::generic_category().message(os_errno) +
                            ". The song index is unchanged",
                 .input_name = path,
                 .os_errno = os_errno};
}

Result<void> AtomicFile::flush() {
    if (auto written = write_at(flushed_bytes_, buffer_); !written) return written;
    flushed_bytes_ += buffer_.size();
    buffer_.clear();
    return {};
}

Result<void> AtomicFile::write_at(std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t count =
            ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset_bytes));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return failure(count < 0 ? errno : EIO);
        offset_bytes += static_cast<std::uint64_t>(count);
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return {};
}

Result<MappedFile> MappedFile::open(const std::string& path, Access access) {
    auto file = open_regular_file(path);
    if (!file) return std::move(file.error());
    if (file->size_bytes == 0) return MappedFile({});
    void* const start =
        ::mmap(nullptr, file->size_bytes, PROT_READ, MAP_SHARED, file->descriptor.get(), 0);
    if (start == MAP_FAILED) {
        return file_refusal(ErrorCode::input_unreadable, path,
                            std::generic_category().message(errno), errno);
    }
    // A hint: if it fails, reading is only slower.
    ::madvise(start, file->size_bytes, access == Access::random ? MADV_RANDOM : MADV_SEQUENTIAL);
    return MappedFile({static_cast<const std::byte*>(start), file->size_bytes});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<std::vector<std::string>> names_in(const std::string& folder) {
    const auto close = [](DIR* opened) { ::closedir(opened); };
    const std::unique_ptr<DIR, decltype(close)> opened(::opendir(folder.c_str()), close);
    if (opened == nullptr) {
        return file_refusal(ErrorCode::input_unreadable, folder,
                            std::generic_category().message(errno), errno);
    }
    std::vector<std::string> names;
    while (const dirent* const entry = ::readdir(opened.get())) {
        const std::string_view name(&entry->d_name[0]);
        if (name != "." && name != "..") names.emplace_back(name);
    }
    return names;
}

}  // namespace polymux::song
