// Requests that the front has refused, for the application's log and metrics.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>

#include "polymux/server/front.hpp"

namespace polymux::server {

/// Threads add requests, and the application takes them. A flood costs little memory and few lines:
/// further requests are only counted.
class RefusedLog {
public:
    /// Returns whether this is the first one since they were taken.
    bool add(RefusedRequest&& request) {
        const std::scoped_lock lock(mutex_);
        const bool is_first = refused_.requests.empty();
        if (refused_.requests.size() < max_requests) {
            refused_.requests.push_back(std::move(request));
            return is_first;
        }
        const auto same = std::find_if(
            refused_.others.begin(), refused_.others.end(), [&](const RefusedCount& other) {
                return other.path == request.path && other.status == request.status;
            });
        if (same != refused_.others.end()) {
            ++same->count;
        } else {
            refused_.others.push_back(
                {.path = std::move(request.path), .status = request.status, .count = 1});
        }
        return false;
    }

    /// Swaps the requests with `refused`, which must be empty.
    void take(RefusedRequests& refused) {
        const std::scoped_lock lock(mutex_);
        std::swap(refused, refused_);
    }

private:
    static constexpr std::size_t max_requests = 200;

    std::mutex mutex_;
    RefusedRequests refused_;
};

}  // namespace polymux::server
