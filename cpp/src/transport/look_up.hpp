// Resolves names on a thread that the caller can abandon.
#pragma once

#include <string>
#include <vector>

#include "transport/fetch_monitor.hpp"

namespace polymux::transport {

/// Maximum lookups running in this process. Lookups blocked by a silent resolver are abandoned, and
/// must not accumulate.
inline constexpr int max_look_ups = 64;

/// Resolves all addresses of `name` with the system's resolver, or with `injected` if given.
///
/// Errors: `connect_failed` with stage "resolve"; `timed_out` with stage "connect" at `deadline`;
/// errors of `monitor`. It returns on time even if the resolver does not.
Result<std::vector<Address>> look_up(const std::string& name, const Resolver& injected, int call,
                                     Clock::time_point deadline, FetchMonitor& monitor);

}  // namespace polymux::transport
