#include "transport/io_thread.hpp"

#include <pthread.h>

#include <system_error>
#include <utility>

#include "signals_blocked.hpp"

namespace polymux::transport {

Result<std::unique_ptr<IoThread>> IoThread::start(std::unique_ptr<Engine> engine) {
    auto thread = std::make_unique<IoThread>();
    thread->shared_ = std::make_shared<Shared>();
    thread->mailbox_ = engine->mailbox();
    thread->shared_->engine = std::move(engine);
    auto handed_over = std::make_unique<std::shared_ptr<Shared>>(thread->shared_);
    pthread_t id{};
    const int failed = [&] {
        const SignalsBlocked blocked;
        return pthread_create(&id, nullptr, &IoThread::run, handed_over.get());
    }();
    if (failed != 0) {
        return Error{.code = ErrorCode::internal,
                     .message = "cannot start a thread: " + std::generic_category().message(failed),
                     .os_errno = failed};
    }
    [[maybe_unused]] const auto* const taken = handed_over.release();
    pthread_setname_np(id, "polymux-io");
    pthread_detach(id);
    return thread;
}

void* IoThread::run(void* handed_over) {
    const std::unique_ptr<std::shared_ptr<Shared>> own(
        static_cast<std::shared_ptr<Shared>*>(handed_over));
    Shared& shared = **own;
    constexpr milliseconds for_ever{-1};
    while (!shared.engine->stopped()) shared.engine->run_once(for_ever);
    shared.engine.reset();
    const std::scoped_lock lock(shared.mutex);
    shared.ended = true;
    shared.changed.notify_all();
    return nullptr;
}

void IoThread::post(std::shared_ptr<Exchange> exchange) {
    mailbox_->post(Mailbox::Command::start, std::move(exchange));
}

void IoThread::stop(milliseconds max_wait) noexcept {
    mailbox_->stop();
    std::unique_lock lock(shared_->mutex);
    shared_->changed.wait_for(lock, max_wait, [this] { return shared_->ended; });
}

}  // namespace polymux::transport
