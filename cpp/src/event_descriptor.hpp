// eventfd(2): wakes a thread that waits for descriptors.
#pragma once

#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "file_descriptor.hpp"
#include "polymux/result.hpp"

namespace polymux {

/// Readable after `raise_event`.
inline Result<FileDescriptor> make_event() {
    FileDescriptor event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event.is_open()) {
        return Error{.code = ErrorCode::internal,
                     .message = "cannot create an event descriptor: " +
                                std::generic_category().message(errno),
                     .os_errno = errno};
    }
    return event;
}

inline void raise_event(const FileDescriptor& event) noexcept {
    const std::uint64_t one = 1;
    // Fails only at a count of 2^64 - 1, and the descriptor is readable then.
    [[maybe_unused]] const auto written = ::write(event.get(), &one, sizeof one);
}

inline void clear_event(const FileDescriptor& event) noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto read = ::read(event.get(), &count, sizeof count);
}

}  // namespace polymux
