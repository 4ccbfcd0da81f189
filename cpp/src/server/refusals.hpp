// Responses to requests that were not parsed.
#pragma once

#include <string>

#include "polymux/http1/refusal.hpp"

namespace polymux::server {

/// A whole response that closes the connection: an error as JSON with the code of `status`, and the
/// name of `reason`.
[[nodiscard]] std::string early_refusal(int status, http1::Refusal reason = http1::Refusal::none);

}  // namespace polymux::server
