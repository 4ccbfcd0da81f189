// libcurl's callbacks of a transfer.
#pragma once

#include "transport/transfer.hpp"

namespace polymux::transport {

/// Sets options, and remembers whether memory was out for one of them. Some are refused at some
/// moments, such as another size of a buffer that another stream of the connection still uses: then
/// the old one stays.
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

/// False where memory is out.
bool set_callbacks(Transfer& transfer, EngineContext& context);

}  // namespace polymux::transport
