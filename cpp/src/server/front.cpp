#include "polymux/server/front.hpp"

#include <utility>

#include "server/io_thread.hpp"

namespace polymux::server {

Result<std::unique_ptr<Front>> Front::start(int listener, const FrontOptions& options) {
    auto event = make_event();
    if (!event) return std::move(event.error());
    std::shared_ptr<TlsContext> tls;
    if (!options.tls_certificate.empty()) {
        auto loaded = TlsContext::load(options.tls_certificate, options.tls_key);
        if (!loaded) return std::move(loaded.error());
        tls = *std::move(loaded);
    }
    auto front = std::make_unique<Front>(
        std::make_shared<Shared>(options, *std::move(event), std::move(tls)));
    for (std::size_t i = 0; i < options.io_threads; ++i) {
        auto thread = IoThread::start(front->shared_, listener);
        if (!thread) return std::move(thread.error());
        front->threads_.push_back(*std::move(thread));
    }
    return front;
}

Front::Front(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

Front::~Front() {
    threads_.clear();
    shared_->events.close();
}

int Front::descriptor() const noexcept {
    return shared_->events.descriptor();
}

void Front::take(std::vector<Event>& events) {
    shared_->events.take(events);
}

void Front::publish(std::shared_ptr<const FrontRules> rules) {
    shared_->rules.publish(std::move(rules));
}

void Front::take_refused(RefusedRequests& refused) {
    shared_->refused.take(refused);
}

void Front::drain() {
    shared_->is_draining = true;
    for (const auto& thread : threads_) thread->post({.kind = Command::Kind::drain});
}

void Front::close_all() {
    for (const auto& thread : threads_) thread->post({.kind = Command::Kind::close_all});
}

std::size_t Front::connections() const noexcept {
    return shared_->connections;
}

std::uint64_t Front::received_bytes() const noexcept {
    return shared_->received_bytes;
}

std::uint64_t Front::dropped_bytes() const noexcept {
    return shared_->dropped_bytes;
}

}  // namespace polymux::server
