// libcurl's callbacks for a transfer.
#pragma once

#include "transport/transfer.hpp"

namespace polymux::transport {

/// Sets options, and records whether one of them ran out of memory. libcurl refuses some options in
/// some states, such as another buffer size while another stream of the connection uses the buffer.
/// The old value then stays.
class Setter {
public:
    explicit Setter(CURL* handle) noexcept : handle_(handle) {}
    template <typename T>
    void operator()(CURLoption option, T value) noexcept {
        if (curl_easy_setopt(handle_, option, value) == CURLE_OUT_OF_MEMORY) failed_ = true;
    }
    [[nodiscard]] bool succeeded() const noexcept { return !failed_; }

private:
    CURL* handle_;
    bool failed_ = false;
};

/// Returns false if out of memory.
bool set_callbacks(Transfer& transfer, EngineContext& context);

}  // namespace polymux::transport
