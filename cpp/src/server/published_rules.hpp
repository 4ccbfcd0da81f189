// The current rules, for all threads of a front.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "polymux/server/front.hpp"

namespace polymux::server {

/// Rules with an index of their paths.
class RulesByPath {
public:
    explicit RulesByPath(std::shared_ptr<const FrontRules> rules) : rules_(std::move(rules)) {
        for (std::size_t i = 0; i < rules_->endpoints.size(); ++i) {
            by_path_.emplace(rules_->endpoints[i].path, i);
        }
    }

    [[nodiscard]] const FrontRules& rules() const noexcept { return *rules_; }
    /// The index of the endpoint at this path, or null.
    [[nodiscard]] const std::size_t* find(std::string_view path) const {
        const auto found = by_path_.find(path);
        return found == by_path_.end() ? nullptr : &found->second;
    }

private:
    const std::shared_ptr<const FrontRules> rules_;
    std::unordered_map<std::string_view, std::size_t> by_path_;  ///< Views of `rules_`.
};

class PublishedRules {
public:
    void publish(std::shared_ptr<const FrontRules> rules) {
        auto made =
            rules == nullptr ? nullptr : std::make_shared<const RulesByPath>(std::move(rules));
        const std::scoped_lock lock(mutex_);
        current_.swap(made);
        ++version_;
    }

    /// Updates a thread's own copy; null if nothing is refused. Takes the lock only after changes.
    void update(std::shared_ptr<const RulesByPath>& own, std::uint64_t& own_version) const {
        if (own_version == version_) return;
        const std::scoped_lock lock(mutex_);
        own = current_;
        own_version = version_;
    }

private:
    mutable std::mutex mutex_;
    std::shared_ptr<const RulesByPath> current_;
    std::atomic<std::uint64_t> version_ = 0;
};

}  // namespace polymux::server
