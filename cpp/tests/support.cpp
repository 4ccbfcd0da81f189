#include "support.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>

namespace polymux::testing {

namespace {

int exit_status_of(pid_t process) {
    int status = 0;
    while (::waitpid(process, &status, 0) < 0) REQUIRE(errno == EINTR);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// A file in memory: unlike a pipe, it never fills up while unread.
class Capture {
public:
    Capture() : descriptor_(::memfd_create("capture", MFD_CLOEXEC)) { REQUIRE(descriptor_ >= 0); }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    ~Capture() { ::close(descriptor_); }

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

    [[nodiscard]] std::string content() const {
        return read_file("/proc/self/fd/" + std::to_string(descriptor_));
    }

private:
    int descriptor_;
};

}  // namespace

TemporaryFolder::TemporaryFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "polymux-test-XXXXXX";
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::file(std::string_view name) const {
    return path_ + "/" + std::string(name);
}

std::vector<std::string> TemporaryFolder::entries() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
        names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::span<const std::byte> as_bytes(std::string_view text) noexcept {
    return std::as_bytes(std::span(text.data(), text.size()));
}

std::string as_text(std::span<const std::byte> bytes) {
    std::string text(bytes.size(), '\0');
    std::transform(bytes.begin(), bytes.end(), text.begin(),
                   [](std::byte value) { return static_cast<char>(value); });
    return text;
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    REQUIRE_MESSAGE(file.good(), "cannot open ", path);
    std::string content{std::istreambuf_iterator<char>(file), {}};
    REQUIRE_FALSE(file.bad());
    return content;
}

void write_file(const std::string& path, std::string_view content) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    file.close();
    REQUIRE_MESSAGE(file.good(), "cannot write ", path);
}

ProgramResult run_program(const std::vector<std::string>& arguments) {
    const Capture output;
    const Capture errors;
    std::vector<std::string> copies = arguments;
    std::vector<char*> pointers;
    for (std::string& argument : copies) pointers.push_back(argument.data());
    pointers.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    REQUIRE(::posix_spawn_file_actions_init(&actions) == 0);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, output.descriptor(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), STDERR_FILENO);
    pid_t process = -1;
    const int failure =
        ::posix_spawnp(&process, pointers[0], &actions, nullptr, pointers.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    REQUIRE_MESSAGE(failure == 0, "cannot start ", arguments.front());

    const int exit_status = exit_status_of(process);
    return {.exit_status = exit_status, .output = output.content(), .errors = errors.content()};
}

void make_media(const std::string& path, const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {"ffmpeg",    "-nostdin", "-hide_banner",
                                        "-loglevel", "error",    "-y"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.push_back("file:" + path);
    const ProgramResult result = run_program(command);
    REQUIRE_MESSAGE(result.exit_status == 0, "ffmpeg failed: ", result.errors);
}

int run_in_child(const std::function<int()>& body) {
    // Otherwise a child that ends by exit() would print the parent's buffered output again.
    std::cout.flush();
    std::fflush(nullptr);
    const pid_t process = ::fork();
    REQUIRE(process >= 0);
    if (process == 0) {
        int status = 125;
        try {
            status = body();
        } catch (const std::exception&) {
            status = 124;
        }
        // The child must not flush the parent's buffers or destroy its static objects.
        ::_exit(status);
    }
    return exit_status_of(process);
}

}  // namespace polymux::testing
