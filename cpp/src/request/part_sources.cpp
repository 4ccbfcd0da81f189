#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "path_text.hpp"
#include "polymux/request/multipart.hpp"
#include "regular_file.hpp"

namespace polymux::request {

namespace {

class MemoryPart final : public PartSource {
public:
    MemoryPart(std::span<const std::byte> bytes, std::string name,
               std::shared_ptr<const void> owner)
        : owner_(std::move(owner)), bytes_(bytes), name_(std::move(name)) {}

    std::optional<std::uint64_t> size_bytes() const noexcept override { return bytes_.size(); }
    Result<std::size_t> read(std::span<std::byte> buffer) override {
        const auto taken =
            bytes_.subspan(offset_, std::min(buffer.size(), bytes_.size() - offset_));
        std::ranges::copy(taken, buffer.begin());
        offset_ += taken.size();
        return taken.size();
    }
    bool can_rewind() const noexcept override { return true; }
    Result<void> rewind() override {
        offset_ = 0;
        return {};
    }
    const std::string& name() const noexcept override { return name_; }

private:
    std::shared_ptr<const void> owner_;
    std::span<const std::byte> bytes_;
    std::string name_;
    std::size_t offset_ = 0;
};

/// Unbuffered: it reads into the buffer that is sent.
class DescriptorPart final : public PartSource {
public:
    DescriptorPart(RegularFile file, std::uint64_t start_bytes, std::string name)
        : file_(std::move(file)),
          start_bytes_(start_bytes),
          size_bytes_(file_.size_bytes > start_bytes ? file_.size_bytes - start_bytes : 0),
          name_(std::move(name)) {}

    std::optional<std::uint64_t> size_bytes() const noexcept override { return size_bytes_; }

    Result<std::size_t> read(std::span<std::byte> buffer) override {
        for (;;) {
            const ssize_t count = ::pread(file_.descriptor.get(), buffer.data(), buffer.size(),
                                          static_cast<off_t>(start_bytes_ + offset_bytes_));
            if (count >= 0) {
                offset_bytes_ += static_cast<std::uint64_t>(count);
                return static_cast<std::size_t>(count);
            }
            if (errno != EINTR) return read_failure(errno);
        }
    }

    Result<void> check_unchanged() override {
        struct stat now{};
        if (::fstat(file_.descriptor.get(), &now) != 0) return read_failure(errno);
        const RegularFile& then = file_;
        if (static_cast<std::uint64_t>(now.st_size) != then.size_bytes) {
            return changed("had " + std::to_string(then.size_bytes) +
                           " bytes when sending started, but " + std::to_string(now.st_size) +
                           " bytes at the end");
        }
        if (now.st_mtim.tv_sec != then.modified.tv_sec ||
            now.st_mtim.tv_nsec != then.modified.tv_nsec) {
            return changed("was modified while it was being sent");
        }
        // Files in /proc report a size of 0.
        std::byte more{};
        if (then.size_bytes == 0 && ::pread(file_.descriptor.get(), &more, 1, 0) > 0) {
            return {Error{.code = ErrorCode::input_changed,
                          .message = quoted_path(name_) +
                                     " contains data, although its reported size is 0 bytes. "
                                     "Send a copy",
                          .input_name = name_}};
        }
        return {};
    }

    bool can_rewind() const noexcept override { return true; }
    Result<void> rewind() override {
        offset_bytes_ = 0;
        return {};
    }
    const std::string& name() const noexcept override { return name_; }

private:
    Error changed(const std::string& how) const {
        return {.code = ErrorCode::input_changed,
                .message = quoted_path(name_) + " " + how +
                           ". Send it again when it is no longer being written, or send a copy",
                .input_name = name_};
    }
    Error read_failure(int os_errno) const {
        return file_refusal(ErrorCode::input_unreadable, name_,
                            "reading at byte " + std::to_string(start_bytes_ + offset_bytes_) +
                                " failed: " + std::generic_category().message(os_errno),
                            os_errno);
    }

    RegularFile file_;
    std::uint64_t start_bytes_;
    std::uint64_t size_bytes_;
    std::string name_;
    std::uint64_t offset_bytes_ = 0;
};

}  // namespace

class FedPart final : public PartSource {
public:
    FedPart(std::shared_ptr<Feed> feed, std::string name, std::optional<std::uint64_t> size_bytes)
        : feed_(std::move(feed)), name_(std::move(name)), size_bytes_(size_bytes) {}

    std::optional<std::uint64_t> size_bytes() const noexcept override { return size_bytes_; }

    Result<std::size_t> read(std::span<std::byte> buffer) override {
        const std::scoped_lock lock(feed_->mutex_);
        std::size_t filled = 0;
        while (filled < buffer.size() && !feed_->pieces_.empty()) {
            const auto rest = std::span(feed_->pieces_.front()).subspan(feed_->offset_);
            const auto taken = rest.first(std::min(rest.size(), buffer.size() - filled));
            std::ranges::copy(taken, buffer.subspan(filled).begin());
            filled += taken.size();
            feed_->offset_ += taken.size();
            if (taken.size() == rest.size()) {
                feed_->pieces_.pop_front();
                feed_->offset_ = 0;
            }
        }
        feed_->waiting_bytes_ -= filled;
        starved_ = filled == 0 && !feed_->ended_;
        if (filled == 0 && feed_->error_) return *feed_->error_;
        return filled;
    }

    Result<void> check_unchanged() override {
        const std::scoped_lock lock(feed_->mutex_);
        if (feed_->waiting_bytes_ == 0) return {};
        return Error{.code = ErrorCode::input_changed,
                     .message = quoted_path(name_) +
                                " returned more bytes than declared (allowed " +
                                std::to_string(size_bytes_.value_or(0)) +
                                "). Declare the correct size, or none",
                     .input_name = name_};
    }

    bool starved() const noexcept override { return starved_; }
    bool can_rewind() const noexcept override { return false; }
    Result<void> rewind() override {
        return Error{.code = ErrorCode::internal,
                     .message = "a part that receives its data in pieces cannot be rewound"};
    }
    const std::string& name() const noexcept override { return name_; }

private:
    std::shared_ptr<Feed> feed_;
    std::string name_;
    std::optional<std::uint64_t> size_bytes_;
    bool starved_ = false;
};

void Feed::push(std::vector<std::byte> bytes) {
    const std::scoped_lock lock(mutex_);
    if (ended_ || bytes.empty()) return;
    waiting_bytes_ += bytes.size();
    pieces_.push_back(std::move(bytes));
}

void Feed::finish() {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
}

void Feed::fail(Error error) {
    const std::scoped_lock lock(mutex_);
    if (ended_) return;
    ended_ = true;
    error_ = std::move(error);
}

std::size_t Feed::waiting_bytes() const {
    const std::scoped_lock lock(mutex_);
    return waiting_bytes_;
}

std::unique_ptr<PartSource> memory_part(std::span<const std::byte> bytes, std::string name,
                                        std::shared_ptr<const void> owner) {
    return std::make_unique<MemoryPart>(bytes, std::move(name), std::move(owner));
}

Result<std::unique_ptr<PartSource>> file_part(const std::string& path) {
    Result<RegularFile> file = open_regular_file(path);
    if (!file) return std::move(file.error());
    return std::unique_ptr<PartSource>(std::make_unique<DescriptorPart>(*std::move(file), 0, path));
}

Result<std::unique_ptr<PartSource>> descriptor_part(int descriptor, std::uint64_t start_bytes,
                                                    std::string name) {
    Result<RegularFile> file = share_regular_file(descriptor, name);
    if (!file) return std::move(file.error());
    return std::unique_ptr<PartSource>(
        std::make_unique<DescriptorPart>(*std::move(file), start_bytes, std::move(name)));
}

std::unique_ptr<PartSource> fed_part(std::shared_ptr<Feed> feed, std::string name,
                                     std::optional<std::uint64_t> size_bytes) {
    return std::make_unique<FedPart>(std::move(feed), std::move(name), size_bytes);
}

}  // namespace polymux::request
