#include "polymux/transport/session.hpp"

#include <mutex>
#include <utility>

#include "transport/engine.hpp"
#include "transport/io_thread.hpp"
#include "transport/process.hpp"

namespace polymux::transport {

namespace {

/// For an engine driven by one thread, and for the engine of all event loops.
constexpr long kept_by_caller = 8;
constexpr long kept_by_thread = 2048;
/// More engines are closed on return, because so many threads rarely call at once for long.
constexpr std::size_t max_idle_engines = 64;
/// A returned engine is not driven, so a response that continues after its last event would go
/// unnoticed. Usually its end arrives together with that event.
constexpr milliseconds max_drain_time{20};

Error closed_error() {
    return {.code = ErrorCode::invalid_argument, .message = "the client is closed"};
}

}  // namespace

/// A session's state in one process.
struct Session::State {
    std::shared_ptr<SessionCommon> common;
    const unsigned process = process_generation();
    std::mutex mutex;
    std::vector<std::unique_ptr<Engine>> idle;
    std::vector<std::shared_ptr<Mailbox>> leased;  // Mailboxes of the leased engines.
    std::unique_ptr<IoThread> thread;
    bool closed = false;

    void return_engine(std::unique_ptr<Engine> engine) {
        const std::scoped_lock lock(mutex);
        std::erase(leased, engine->mailbox());
        if (!closed && idle.size() < max_idle_engines) idle.push_back(std::move(engine));
    }

    std::unique_ptr<Engine> take_idle() {
        const std::scoped_lock lock(mutex);
        if (idle.empty()) return nullptr;
        std::unique_ptr<Engine> engine = std::move(idle.back());
        idle.pop_back();
        return engine;
    }
};

Session::Session(SessionOptions options)
    : common_(std::make_shared<SessionCommon>(std::move(options))),
      state_(std::make_unique<std::shared_ptr<State>>(std::make_shared<State>()).release()) {
    (*state_)->common = common_;
}

Session::~Session() {
    close();
    const std::unique_ptr<std::shared_ptr<State>> last(state_.load());
}

/// The state of this process. A forked child sees its parent's state, whose mutex may be locked
/// forever. It creates a new one, and neither uses nor destroys the old one.
std::shared_ptr<Session::State> Session::state() {
    std::shared_ptr<State>* found = state_.load();
    if ((*found)->process == process_generation()) return *found;
    auto fresh = std::make_unique<std::shared_ptr<State>>(std::make_shared<State>());
    (*fresh)->common = common_;
    if (state_.compare_exchange_strong(found, fresh.get())) {
        found = fresh.release();
    }
    return *state_.load();
}

Result<Lease> Session::lease() {
    const std::shared_ptr<State> current = state();
    std::unique_ptr<Engine> engine = current->take_idle();
    if (!engine) {
        auto made = Engine::create(common_, kept_by_caller);
        if (!made) return std::move(made.error());
        engine = *std::move(made);
    }
    const std::scoped_lock lock(current->mutex);
    if (current->closed) return closed_error();
    current->leased.push_back(engine->mailbox());
    return Lease(std::move(engine), current);
}

Result<void> Session::start(const std::shared_ptr<Exchange>& exchange) {
    const std::shared_ptr<State> current = state();
    const std::scoped_lock lock(current->mutex);
    if (current->closed) return closed_error();
    if (!current->thread) {
        auto engine = Engine::create(common_, kept_by_thread);
        if (!engine) return std::move(engine.error());
        auto started = IoThread::start(*std::move(engine));
        if (!started) return std::move(started.error());
        current->thread = *std::move(started);
    }
    current->thread->post(exchange);
    return {};
}

void Session::close(milliseconds max_wait) noexcept {
    const std::shared_ptr<State> current = state();
    std::vector<std::unique_ptr<Engine>> idle;
    std::unique_ptr<IoThread> thread;
    {
        const std::scoped_lock lock(current->mutex);
        current->closed = true;
        idle.swap(current->idle);
        for (const auto& mailbox : current->leased)
            mailbox->post(Mailbox::Command::close_all, nullptr);
        thread = std::move(current->thread);
    }
    if (thread) thread->stop(max_wait);
}

bool Session::repeatable() const noexcept {
    return common_->repeatable.load(std::memory_order_relaxed);
}

Lease::Lease(std::unique_ptr<Engine> engine, std::shared_ptr<Session::State> state) noexcept
    : engine_(std::move(engine)), state_(std::move(state)) {}

Lease::Lease() noexcept = default;
Lease::Lease(Lease&& other) noexcept = default;

Lease& Lease::operator=(Lease&& other) noexcept {
    if (this != &other) {
        end();
        engine_ = std::move(other.engine_);
        state_ = std::move(other.state_);
    }
    return *this;
}

Lease::~Lease() {
    end();
}

void Lease::start(const std::shared_ptr<Exchange>& exchange) {
    engine_->start(exchange);
}

RunResult Lease::run(const Exchange& exchange, milliseconds max_wait) {
    const auto until = steady_clock::now() + max_wait;
    auto left = max_wait;
    while (!exchange.has_news()) {
        if (!engine_->run_once(left))
            return exchange.has_news() ? RunResult::news : RunResult::interrupted;
        if (exchange.has_news()) break;
        left = std::chrono::ceil<milliseconds>(until - steady_clock::now());
        if (left.count() <= 0) return RunResult::timed_out;
    }
    return RunResult::news;
}

bool Lease::idle() const noexcept {
    return !engine_ || engine_->idle();
}

void Lease::end() noexcept {
    if (!engine_) return;
    const std::shared_ptr<Session::State> state = std::move(state_);
    if (state->process != process_generation()) {
        Engine::abandon(std::move(engine_));
        return;
    }
    engine_->cancel_all("the request was canceled");
    engine_->end_draining(max_drain_time);
    state->return_engine(std::move(engine_));
}

}  // namespace polymux::transport
