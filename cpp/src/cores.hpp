// Number of cores in a container's CPU quota.
#pragma once

#include <optional>
#include <string>

namespace polymux::internal {

/// The smallest CPU quota, in cores, of this process's control group and of its parents (version 1
/// or 2); none if unlimited or unknown. `root` is a prefix of /proc and /sys: empty except in
/// tests.
[[nodiscard]] std::optional<double> quota_cores(const std::string& root);

}  // namespace polymux::internal
