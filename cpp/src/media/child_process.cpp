#include "media/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace polymux::media {

namespace {

constexpr int cancel_check_interval_ms = 50;
constexpr std::size_t max_error_bytes = 400;

Error cannot_run(const std::string& name, int os_errno) {
    return Error{
        .code = ErrorCode::encoder_failed,
        .message = "cannot run '" + name + "': " + std::generic_category().message(os_errno),
        .os_errno = os_errno};
}

/// The child gets other standard streams, no blocked or ignored signals, and a separate process
/// group: Ctrl-C must reach only this process.
class Setup {
public:
    Setup() {
        posix_spawn_file_actions_init(&actions_);
        posix_spawnattr_init(&attributes_);
        sigset_t none;
        sigset_t all;
        sigemptyset(&none);
        sigfillset(&all);
        posix_spawnattr_setsigmask(&attributes_, &none);
        posix_spawnattr_setsigdefault(&attributes_, &all);
        posix_spawnattr_setpgroup(&attributes_, 0);
        posix_spawnattr_setflags(
            &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    }
    ~Setup() {
        posix_spawn_file_actions_destroy(&actions_);
        posix_spawnattr_destroy(&attributes_);
    }
    Setup(const Setup&) = delete;
    Setup& operator=(const Setup&) = delete;

    int start(pid_t& pid, std::vector<char*>& arguments, int output, int errors) {
        posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions_, errors, STDERR_FILENO);
        return posix_spawnp(&pid, arguments[0], &actions_, &attributes_, arguments.data(), environ);
    }

private:
    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
};

}  // namespace

ChildProcess::ChildProcess(pid_t pid, std::string name, FileDescriptor output,
                           FileDescriptor errors)
    : pid_(pid), name_(std::move(name)), output_(std::move(output)), errors_(std::move(errors)) {}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      name_(std::move(other.name_)),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)) {}

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& command) {
    const std::string& name = command.front();
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return cannot_run(name, errno);
    FileDescriptor output(ends[0]);
    const FileDescriptor written(ends[1]);
    FileDescriptor errors(::memfd_create("errors", MFD_CLOEXEC));
    if (!errors.is_open()) return cannot_run(name, errno);
    std::vector<std::string> copies = command;
    std::vector<char*> arguments;
    arguments.reserve(copies.size() + 1);
    for (std::string& argument : copies) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    pid_t pid = -1;
    const int failure = Setup().start(pid, arguments, written.get(), errors.get());
    if (failure != 0) return cannot_run(name, failure);
    return ChildProcess(pid, name, std::move(output), std::move(errors));
}

ChildProcess::~ChildProcess() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

std::size_t ChildProcess::read(std::span<std::byte> buffer, const CancelToken& token) {
    while (!token.cancelled()) {
        pollfd waiting{.fd = output_.get(), .events = POLLIN, .revents = 0};
        if (::poll(&waiting, 1, cancel_check_interval_ms) <= 0) continue;
        const ssize_t count = ::read(output_.get(), buffer.data(), buffer.size());
        if (count >= 0) return static_cast<std::size_t>(count);
        if (errno != EINTR) return 0;
    }
    return 0;
}

Result<void> ChildProcess::finish() {
    int status = 0;
    pid_t ended = -1;
    do {
        ended = ::waitpid(pid_, &status, 0);
    } while (ended < 0 && errno == EINTR);
    // Something else in this process may have waited for the program.
    const bool known = std::exchange(pid_, -1) == ended;
    if (!known || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) return {};
    std::array<char, max_error_bytes> text{};
    const ssize_t bytes = ::pread(errors_.get(), text.data(), text.size(), 0);
    std::string said(text.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
    while (!said.empty() && said.back() == '\n') said.pop_back();
    const std::string how = WIFEXITED(status) ? "exit status " + std::to_string(WEXITSTATUS(status))
                                              : "signal " + std::to_string(WTERMSIG(status));
    return Error{
        .code = ErrorCode::encoder_failed,
        .message = "'" + name_ + "' failed with " + how + (said.empty() ? "" : ": ") + said};
}

}  // namespace polymux::media
