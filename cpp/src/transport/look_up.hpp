// Names to addresses, on a thread that nobody has to wait for.
#pragma once

#include <string>
#include <vector>

#include "transport/fetch_monitor.hpp"

namespace polymux::transport {

/// Look-ups under way in this process at most: those that a silent resolver holds are left behind,
/// and they may not pile up.
inline constexpr int max_look_ups = 64;

/// All addresses of `name` by the system's resolver, or by `injected` where it is not empty.
///
/// `connect_failed` with stage "resolve"; `timed_out` with stage "connect" at `deadline`; what
/// `monitor` says. It returns then whether the resolver does or not.
Result<std::vector<Address>> look_up(const std::string& name, const Resolver& injected, int call,
                                     Clock::time_point deadline, FetchMonitor& monitor);

}  // namespace polymux::transport
