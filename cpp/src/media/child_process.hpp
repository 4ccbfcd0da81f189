// A program whose standard output is read.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "file_descriptor.hpp"
#include "polymux/cancel.hpp"
#include "polymux/result.hpp"

namespace polymux::media {

/// The destructor kills the program if it still runs. Used by one thread.
class ChildProcess {
public:
    /// Looks up `command[0]` in PATH. Standard input is empty.
    static Result<ChildProcess> start(const std::vector<std::string>& command);

    ChildProcess(ChildProcess&& other) noexcept;
    ChildProcess& operator=(ChildProcess&&) = delete;
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;
    ~ChildProcess();

    /// Waits for output. Returns the number of bytes; 0 at the end, or after a cancellation.
    std::size_t read(std::span<std::byte> buffer, const CancelToken& token);
    /// Call at the end of the output. An exit status other than 0 is the error `encoder_failed`,
    /// with the beginning of what the program wrote to standard error.
    Result<void> finish();

private:
    ChildProcess(pid_t pid, std::string name, FileDescriptor output, FileDescriptor errors);

    pid_t pid_;
    std::string name_;
    FileDescriptor output_;
    FileDescriptor errors_;
};

}  // namespace polymux::media
