// libcurl's callbacks of a transfer.
#pragma once

#include "transport/transfer.hpp"

namespace polymux::transport {

/// Sets options, and remembers whether all of them could be set: only memory makes them fail.
class Setter {
public:
    explicit Setter(CURL* handle) noexcept : handle_(handle) {}
    template <typename T>
    void operator()(CURLoption option, T value) noexcept {
        if (curl_easy_setopt(handle_, option, value) != CURLE_OK) failed_ = true;
    }
    [[nodiscard]] bool succeeded() const noexcept { return !failed_; }

private:
    CURL* handle_;
    bool failed_ = false;
};

/// False where memory is out.
bool set_callbacks(Transfer& transfer, Surroundings& surroundings);

}  // namespace polymux::transport
