#include "polymux/transport/exchange.hpp"

#include <strings.h>

#include <utility>

#include "polymux/transport/loop_notifier.hpp"
#include "transport/mailbox.hpp"
#include "transport/process.hpp"

namespace polymux::transport {

namespace {

/// Undelivered bytes at which the engine pauses reading for an exchange. It resumes when the
/// consumer takes them, all at once.
constexpr std::size_t high_water_bytes = std::size_t{1} << 20U;

/// Returns the trimmed value of the next field with that name, which may be empty. `rest` becomes
/// the text after it.
std::optional<std::string_view> next_field(std::string_view& rest, std::string_view name) noexcept {
    while (!rest.empty()) {
        const std::size_t end = rest.find("\r\n");
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 2);
        if (line.size() <= name.size() || line[name.size()] != ':' ||
            strncasecmp(line.data(), name.data(), name.size()) != 0) {
            continue;
        }
        std::string_view value = line.substr(name.size() + 1);
        const std::size_t begin = value.find_first_not_of(" \t");
        if (begin == std::string_view::npos) return std::string_view();
        value.remove_prefix(begin);
        return value.substr(0, value.find_last_not_of(" \t") + 1);
    }
    return std::nullopt;
}

}  // namespace

std::string_view ResponseHead::field(std::string_view name) const noexcept {
    std::string_view rest = fields;
    return next_field(rest, name).value_or(std::string_view());
}

bool ResponseHead::contradicts_itself(std::string_view name) const noexcept {
    std::string_view rest = fields;
    const auto first = next_field(rest, name);
    while (const auto other = next_field(rest, name)) {
        if (*other != *first) return true;
    }
    return false;
}

Exchange::Exchange(Task task, std::shared_ptr<LoopNotifier> notifier)
    : task_(std::move(task)), notifier_(std::move(notifier)), process_(process_generation()) {}

Exchange::~Exchange() = default;

bool Exchange::of_this_process() const noexcept {
    return process_ == process_generation();
}

void Exchange::cancel() {
    cancel_asked_.store(true, std::memory_order_relaxed);
    const std::scoped_lock lock(mutex_);
    if (mailbox_) mailbox_->post(Mailbox::Command::cancel, shared_from_this());
}

void Exchange::resume_sending() {
    starved_.store(false, std::memory_order_relaxed);
    const std::scoped_lock lock(mutex_);
    if (mailbox_) mailbox_->post(Mailbox::Command::resume_sending, shared_from_this());
}

std::shared_ptr<const ResponseHead> Exchange::head() const {
    const std::scoped_lock lock(mutex_);
    return head_;
}

std::vector<std::string> Exchange::retry_reasons() const {
    const std::scoped_lock lock(mutex_);
    return retry_reasons_;
}

void Exchange::add_retry(std::string reason) {
    const std::scoped_lock lock(mutex_);
    retry_reasons_.push_back(std::move(reason));
}

bool Exchange::repeatable() const {
    const std::scoped_lock lock(mutex_);
    return repeatable_;
}

void Exchange::take(stream::ChatBatch& batch) {
    const std::scoped_lock lock(mutex_);
    std::swap(batch, batch_);
    on_taken();
}

void Exchange::take(std::string& bytes) {
    const std::scoped_lock lock(mutex_);
    bytes.swap(bytes_);
    on_taken();
}

void Exchange::on_taken() {
    undelivered_bytes_ = 0;
    news_.store(false, std::memory_order_relaxed);
    if (std::exchange(paused_, false) && mailbox_) {
        mailbox_->post(Mailbox::Command::resume_receiving, shared_from_this());
    }
}

void Exchange::begin(std::shared_ptr<Mailbox> mailbox) {
    const std::scoped_lock lock(mutex_);
    mailbox_ = std::move(mailbox);
}

void Exchange::set_head(std::shared_ptr<const ResponseHead> head, bool repeatable) {
    {
        const std::scoped_lock lock(mutex_);
        head_ = std::move(head);
        repeatable_ = repeatable;
        news_.store(true, std::memory_order_release);
    }
    notify();
}

bool Exchange::add_bytes(std::string_view bytes) {
    {
        const std::scoped_lock lock(mutex_);
        if (undelivered_bytes_ >= high_water_bytes) {
            paused_ = true;
            return false;
        }
        bytes_.append(bytes);
        undelivered_bytes_ += bytes.size();
        news_.store(true, std::memory_order_release);
    }
    notify();
    return true;
}

Exchange::Decoded Exchange::decode(std::string_view bytes, stream::ChunkParser& parser) {
    Decoded decoded;
    {
        const std::scoped_lock lock(mutex_);
        if (undelivered_bytes_ >= high_water_bytes) {
            paused_ = true;
            return {.taken = false};
        }
        if (!decoder_) decoder_.emplace(task_.decoder);
        const std::size_t before = batch_.records().size();
        decoder_->feed(bytes, parser, batch_);
        decoded.chunks_came = batch_.records().size() > before;
        if (batch_.end()) decoded.end = batch_.end()->state;
        if (batch_.empty()) return decoded;
        undelivered_bytes_ += bytes.size();
        news_.store(true, std::memory_order_release);
    }
    notify();
    return decoded;
}

void Exchange::finish_decoding(stream::ChunkParser& parser) {
    const std::scoped_lock lock(mutex_);
    if (!decoder_) decoder_.emplace(task_.decoder);
    decoder_->finish(parser, batch_);
    news_.store(true, std::memory_order_release);
}

void Exchange::end(Outcome outcome) {
    {
        const std::scoped_lock lock(mutex_);
        outcome_ = std::move(outcome);
        if (!head_) head_ = outcome_.head;
        mailbox_.reset();
        decoder_.reset();
        ended_.store(true, std::memory_order_release);
    }
    notify();
}

void Exchange::mark_starved() {
    starved_.store(true, std::memory_order_release);
    notify();
}

void Exchange::notify() {
    if (notifier_) notifier_->add(shared_from_this());
}

}  // namespace polymux::transport
