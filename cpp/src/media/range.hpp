// The rule for start and end positions, shared by all operations that accept them.
#pragma once

#include <optional>
#include <string>

namespace polymux::media {

/// A readable description of the pair's problem; nothing if it is valid.
[[nodiscard]] std::optional<std::string> range_problem(std::optional<double> start_s,
                                                       std::optional<double> end_s);

}  // namespace polymux::media
