// The rule for a start and an end position, shared by every operation that takes them.
#pragma once

#include <optional>
#include <string>

namespace polymux::media {

/// What is wrong with the pair, in a person's words; nothing if it is fine.
[[nodiscard]] std::optional<std::string> range_problem(std::optional<double> start_s,
                                                       std::optional<double> end_s);

}  // namespace polymux::media
