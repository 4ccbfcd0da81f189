#include "transport/curl.hpp"

#include <mutex>
#include <string>

namespace polymux::transport {

Result<void> initialise_curl() {
    static std::once_flag once;
    static CURLcode outcome = CURLE_OK;
    // Never undone: OpenSSL and libcurl may be in use by others of this process at its end.
    std::call_once(once, [] { outcome = curl_global_init(CURL_GLOBAL_DEFAULT); });
    if (outcome != CURLE_OK) {
        return Error{.code = ErrorCode::internal,
                     .message = std::string("libcurl cannot be initialised: ") +
                                curl_easy_strerror(outcome)};
    }
    return {};
}

}  // namespace polymux::transport
