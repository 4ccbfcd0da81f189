// Deadlines of many connections.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <utility>

namespace polymux::server {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

inline constexpr TimePoint never = TimePoint::max();

/// The deadline of one object, in `Deadlines`.
struct Deadline {
    TimePoint at = never;
    /// When `Deadlines` looks at it next; never later than `at`.
    TimePoint looked_at = never;
};

/// Orders objects that have a member `deadline`. Postponing a deadline, which every request does,
/// costs nothing: the object is looked at when the earlier deadline has come.
template <typename Owner>
class Deadlines {
public:
    void set(Owner& owner, TimePoint at) {
        owner.deadline.at = at;
        if (at >= owner.deadline.looked_at) return;
        remove(owner);
        queue_.emplace(at, &owner);
        owner.deadline.looked_at = at;
    }

    /// Must be called before the object is destroyed.
    void remove(Owner& owner) {
        if (owner.deadline.looked_at == never) return;
        queue_.erase({owner.deadline.looked_at, &owner});
        owner.deadline.looked_at = never;
    }

    /// When to call `next_due`; `never` without deadlines.
    [[nodiscard]] TimePoint first() const { return queue_.empty() ? never : queue_.begin()->first; }

    /// An object whose deadline has come, without its deadline; null if there is none.
    Owner* next_due(TimePoint now) {
        while (!queue_.empty() && queue_.begin()->first <= now) {
            Owner* const owner = queue_.begin()->second;
            remove(*owner);
            if (owner->deadline.at <= now) {
                owner->deadline.at = never;
                return owner;
            }
            set(*owner, owner->deadline.at);
        }
        return nullptr;
    }

private:
    std::set<std::pair<TimePoint, Owner*>> queue_;
};

}  // namespace polymux::server
