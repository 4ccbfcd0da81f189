// One request of a fetch and its answer, redirect or not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transport/checked_url.hpp"
#include "transport/curl.hpp"
#include "transport/fetch_monitor.hpp"

namespace polymux::transport {

/// What a hop connects to and is bounded by. All of it outlives the hop.
struct HopRequest {
    const CheckedUrl& url;
    std::span<const Address> addresses;  ///< Judged; nothing else is connected to.
    const FetchOptions& options;
    const FetchResume& resume;       ///< What is asked for: that of the options, or all.
    std::string certificate_bundle;  ///< Empty where nothing is verified, or needs to be.
    Clock::time_point connect_deadline;
    bool verified = true;  ///< False: any certificate will do.
};

struct HopResponse {
    int status = 0;
    std::optional<std::string> location;  ///< Of a redirect, whose body was not read.
    bool range_refused = false;  ///< Nor was the body: a rest was asked for, and it is none.
    std::vector<std::pair<std::string, std::string>> headers;
    std::uint64_t body_bytes = 0;
    std::uint64_t received_bytes = 0;
    std::uint64_t offset = 0;  ///< Where the body begins.
};

/// Value of the first header of that name, in any case; null where there is none.
[[nodiscard]] const std::string* find_header(
    const std::vector<std::pair<std::string, std::string>>& headers, std::string_view name);

/// Sends GET and reads the answer on the calling thread. The connection is new and ends with it.
Result<HopResponse> run_hop(const HopRequest& request, FetchSink sink, FetchMonitor& monitor);

}  // namespace polymux::transport
