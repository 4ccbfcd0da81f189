// One request of a fetch and its response, redirect or not.
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

/// Destination and limits of a hop. All of it must outlive the hop.
struct HopRequest {
    const CheckedUrl& url;
    std::span<const Address> addresses;  ///< Checked; connections go only to these.
    const FetchOptions& options;
    const FetchResume& resume;       ///< The requested range: that of the options, or everything.
    std::string certificate_bundle;  ///< Empty if nothing is verified, or needs to be.
    Clock::time_point connect_deadline;
    bool verified = true;  ///< False: accept any certificate.
};

struct HopResponse {
    int status = 0;
    std::optional<std::string> location;  ///< For a redirect; its body was not read.
    bool range_refused = false;           ///< A wrong range; the body was not read.
    std::vector<std::pair<std::string, std::string>> headers;
    std::uint64_t body_bytes = 0;
    std::uint64_t received_bytes = 0;
    std::uint64_t offset = 0;  ///< Start of the body.
};

/// Value of the first header with that name, in any case; null if missing.
[[nodiscard]] const std::string* find_header(
    const std::vector<std::pair<std::string, std::string>>& headers, std::string_view name);

/// Sends GET and reads the response on the calling thread. Uses a new connection and closes it at
/// the end.
Result<HopResponse> run_hop(const HopRequest& request, FetchSink sink, FetchMonitor& monitor);

}  // namespace polymux::transport
