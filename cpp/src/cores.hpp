// How many cores a container's CPU quota amounts to.
#pragma once

#include <optional>
#include <string>

namespace polymux::internal {

/// The tightest CPU quota, in cores, of this process's control group and of those above it (version
/// 1 or 2); none when unlimited or unknown. `root` stands before /proc and /sys: "" but in tests.
[[nodiscard]] std::optional<double> quota_cores(const std::string& root);

}  // namespace polymux::internal
