// A thread that serves connections with epoll(7).
#pragma once

#include <sys/socket.h>

#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "file_descriptor.hpp"
#include "server/connection.hpp"
#include "server/deadlines.hpp"
#include "server/shared.hpp"

namespace polymux::server {

class IoThread {
public:
    static Result<std::unique_ptr<IoThread>> start(std::shared_ptr<Shared> shared, int listener);
    IoThread(std::shared_ptr<Shared> shared, int listener, FileDescriptor epoll,
             FileDescriptor wake);
    IoThread(const IoThread&) = delete;
    IoThread& operator=(const IoThread&) = delete;
    /// Ends the thread and its connections.
    ~IoThread();

    /// From any thread.
    void post(Command command) { outbox_->commands.post(std::move(command)); }

    // For connections, on this thread.
    [[nodiscard]] const FrontOptions& options() const noexcept { return shared_->options; }
    [[nodiscard]] std::unique_ptr<http1::Parser> take_parser();
    /// Only between messages.
    void give_back(std::unique_ptr<http1::Parser> parser);
    [[nodiscard]] const std::shared_ptr<TlsContext>& tls() const noexcept { return shared_->tls; }
    [[nodiscard]] bool is_draining() const noexcept { return shared_->is_draining; }
    [[nodiscard]] const std::shared_ptr<Outbox>& outbox() const noexcept { return outbox_; }
    [[nodiscard]] TimePoint now() const noexcept { return now_; }
    [[nodiscard]] std::vector<char>& buffer() noexcept { return buffer_; }
    [[nodiscard]] int epoll() const noexcept { return epoll_.get(); }
    [[nodiscard]] Deadlines<Connection>& deadlines() noexcept { return deadlines_; }
    [[nodiscard]] Shared& shared() const noexcept { return *shared_; }
    /// The rules of this round; null if nothing is refused.
    [[nodiscard]] const RulesByPath* rules() const noexcept { return rules_.get(); }
    /// Records a request that was refused.
    void note(RefusedRequest request);
    void tell(Event event) { events_.push_back(std::move(event)); }
    /// Parses its waiting input after the other connections had their turn.
    void repeat(Connection& connection) { repeated_.push_back(&connection); }

private:
    void run();
    void accept();
    void accept_one(FileDescriptor socket, const sockaddr_storage& client);
    void run_commands();
    void run(Command& command);
    void run_deadlines();
    void repeat_all();
    /// Runs `work`, then destroys the connection if that has closed it.
    template <typename Work>
    void guarded(Connection& connection, const Work& work);
    void reap_if_closed(Connection& connection);
    void close_all();
    void listen(bool listens);
    [[nodiscard]] int timeout_ms() const;

    const std::shared_ptr<Shared> shared_;
    const std::shared_ptr<Outbox> outbox_;
    const int listener_;
    FileDescriptor epoll_;
    TimePoint now_ = Clock::now();
    TimePoint listens_again_at_ = never;
    TimePoint refused_at_ = never;  ///< When the application learns what was refused.
    bool is_stopping_ = false;
    std::shared_ptr<const RulesByPath> rules_;
    std::uint64_t rules_version_ = 0;
    std::vector<char> buffer_;
    std::vector<Event> events_;
    std::vector<Command> commands_;
    std::vector<Connection*> repeated_;
    std::vector<std::unique_ptr<http1::Parser>> parsers_;  ///< Without a connection.
    Deadlines<Connection> deadlines_;
    std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
    std::vector<std::unique_ptr<Connection>> ended_;  ///< In this round.
    std::thread thread_;
};

}  // namespace polymux::server
