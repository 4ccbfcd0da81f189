#include "transport/look_up.hpp"

#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

#include "file_descriptor.hpp"
#include "signals_blocked.hpp"
#include "transport/process.hpp"
#include "transport/socket_address.hpp"

namespace polymux::transport {
namespace {

using Addresses = std::vector<Address>;

/// The process in the upper half, its running lookups in the lower half. The parent's threads do
/// not exist in a forked child, so they would never decrement the count there.
std::atomic<std::uint64_t> look_ups_under_way{0};

/// Returns false if there are too many already.
bool count_look_up() noexcept {
    constexpr unsigned half = 32;
    const std::uint64_t none = std::uint64_t{process_generation()} << half;
    std::uint64_t before = look_ups_under_way.load();
    for (;;) {
        const std::uint64_t now = (before >> half) == (none >> half) ? before : none;
        if (now - none >= max_look_ups) return false;
        if (look_ups_under_way.compare_exchange_weak(before, now + 1)) return true;
    }
}

Error failed(const char* message) {
    return {.code = ErrorCode::connect_failed, .message = message, .stage = "resolve"};
}

struct FreeAddresses {
    void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};

Result<Addresses> ask_system(const std::string& name) {
    // Without AI_ADDRCONFIG: check addresses that this machine cannot reach now too.
    const addrinfo hints{.ai_flags = 0,
                         .ai_family = AF_UNSPEC,
                         .ai_socktype = SOCK_STREAM,
                         .ai_protocol = 0,
                         .ai_addrlen = 0,
                         .ai_addr = nullptr,
                         .ai_canonname = nullptr,
                         .ai_next = nullptr};
    addrinfo* list = nullptr;
    const int outcome = getaddrinfo(name.c_str(), nullptr, &hints, &list);
    const std::unique_ptr<addrinfo, FreeAddresses> owner(list);
    if (outcome == EAI_MEMORY) {
        return Error{.code = ErrorCode::out_of_memory,
                     .message = "not enough memory to resolve a host name"};
    }
    if (outcome == EAI_AGAIN)
        return failed(
            "the DNS resolver cannot resolve the host of the URL at the moment. Try again later");
    if (outcome != 0) return failed("cannot resolve the host of the URL. Check the host name");
    Addresses addresses;
    for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
        const auto found = endpoint(each->ai_addr, each->ai_addrlen);
        if (!found) return failed("the host of the URL has an address of an unsupported type");
        addresses.push_back(found->address);
    }
    return addresses;
}

/// Shared by the waiting thread and the resolving thread; the last one frees it.
struct Question {
    std::string name;
    Resolver injected;
    int call = 0;
    /// Written to when there is a result. A condition variable would not do, because signals do not
    /// interrupt its wait.
    FileDescriptor answered;
    std::mutex mutex;
    std::optional<Result<Addresses>> answer;

    void ask() noexcept {
        Result<Addresses> found = failed("not enough memory for the host's addresses");
        try {
            found = injected ? injected(name, call) : ask_system(name);
        } catch (const std::exception&) {
            // The initial value.
        }
        {
            const std::scoped_lock lock(mutex);
            answer.emplace(std::move(found));
        }
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = ::write(answered.get(), &one, sizeof one);
        look_ups_under_way.fetch_sub(1);
    }
};

Result<void> start(const std::shared_ptr<Question>& question) {
    if (!count_look_up()) {
        return failed("too many host names are being resolved. Try again later");
    }
    try {
        const SignalsBlocked blocked;
        std::thread([question] { question->ask(); }).detach();
    } catch (const std::exception&) {  // std::system_error if no thread is available.
        look_ups_under_way.fetch_sub(1);
        return failed("no thread is available to resolve a host name. Try again later");
    }
    return {};
}

}  // namespace

Result<std::vector<Address>> look_up(const std::string& name, const Resolver& injected, int call,
                                     Clock::time_point deadline, FetchMonitor& monitor) {
    const auto question = std::make_shared<Question>();
    question->name = name;
    question->injected = injected;
    question->call = call;
    question->answered = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!question->answered.is_open()) {
        return failed("no file descriptor is available to resolve a host name. Try again later");
    }
    if (auto started = start(question); !started) return started.error();
    for (;;) {
        pollfd answered{.fd = question->answered.get(), .events = POLLIN, .revents = 0};
        ::poll(&answered, 1, static_cast<int>(check_interval.count()));
        {
            const std::scoped_lock lock(question->mutex);
            if (question->answer) break;
        }
        if (auto goes_on = monitor.check(); !goes_on) return goes_on.error();
        if (Clock::now() >= deadline) return timeout_error("connect");
    }
    Result<Addresses> found = std::move(*question->answer);
    if (found && found->empty()) return failed("the host of the URL has no address");
    return found;
}

}  // namespace polymux::transport
