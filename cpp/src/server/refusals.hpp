// Responses to requests that the application does not get.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/http1/message.hpp"
#include "polymux/http1/refusal.hpp"
#include "polymux/server/gate.hpp"

namespace polymux::server {

/// A whole response that closes the connection: an error as JSON with the code of `status`, and the
/// name of `reason`.
[[nodiscard]] std::string early_refusal(int status, http1::Refusal reason = http1::Refusal::none);

/// The response to a request that the gate refused.
class RefusalResponse {
public:
    /// `request` are the fields of the request.
    RefusalResponse(const GateRefusal& refusal, std::span<const http1::Field> request,
                    const EndpointRules& endpoint);
    RefusalResponse(const RefusalResponse&) = delete;
    RefusalResponse& operator=(const RefusalResponse&) = delete;

    [[nodiscard]] std::span<const http1::Field> fields() const noexcept { return fields_; }
    [[nodiscard]] const std::string& body() const noexcept { return body_; }
    /// That of the client if it is valid, else a new one.
    [[nodiscard]] const std::string& request_id() const noexcept { return request_id_; }

private:
    std::string request_id_;
    std::string body_;
    std::string length_;
    std::string retry_after_;
    std::string allowed_;
    std::vector<http1::Field> fields_;  ///< Views of the others.
};

}  // namespace polymux::server
