#include "media/mp3/state_log.hpp"

namespace polymux::media::mp3 {

void StateLog::add(const EncoderState& state) {
    const std::scoped_lock lock(mutex_);
    states_.push_back(state);
}

void StateLog::set_search(std::size_t channel, const GainSearch& search) {
    const std::scoped_lock lock(mutex_);
    for (auto state = states_.rbegin(); state != states_.rend(); ++state) {
        GainSearch& logged = state->searches[channel];
        if (logged.count != search.count) break;
        logged = search;
    }
}

GainSearches StateLog::searches() const {
    const std::scoped_lock lock(mutex_);
    return states_.empty() ? GainSearches() : states_.back().searches;
}

std::optional<EncoderState> StateLog::before(std::int64_t number) const {
    const std::scoped_lock lock(mutex_);
    const std::int64_t index = number - first_ - 1;
    if (index < 0 || index >= static_cast<std::int64_t>(states_.size())) return std::nullopt;
    return states_[static_cast<std::size_t>(index)];
}

std::int64_t StateLog::end() const {
    const std::scoped_lock lock(mutex_);
    return first_ + static_cast<std::int64_t>(states_.size());
}

}  // namespace polymux::media::mp3
