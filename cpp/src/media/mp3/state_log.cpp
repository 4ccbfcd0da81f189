#include "media/mp3/state_log.hpp"

namespace polymux::media::mp3 {

void StateLog::add(const std::optional<StateHash>& state) {
    const std::scoped_lock lock(mutex_);
    const auto coded = static_cast<std::size_t>(end_ - first_);
    if (state && states_.size() == coded) states_.push_back(*state);
    ++end_;
}

std::optional<StateHash> StateLog::before(std::int64_t number) const {
    const std::scoped_lock lock(mutex_);
    const std::int64_t index = number - first_ - 1;
    if (index < 0 || index >= static_cast<std::int64_t>(states_.size())) return std::nullopt;
    return states_[static_cast<std::size_t>(index)];
}

std::int64_t StateLog::end() const {
    const std::scoped_lock lock(mutex_);
    return end_;
}

}  // namespace polymux::media::mp3
