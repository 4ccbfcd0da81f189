#include "transport/curl.hpp"

#include <mutex>
#include <string>

namespace polymux::transport {

Result<void> initialise_curl() {
    static std::once_flag once;
    static CURLcode outcome = CURLE_OK;
    // Never undone, because other users of OpenSSL and libcurl may run until the process ends.
    std::call_once(once, [] { outcome = curl_global_init(CURL_GLOBAL_DEFAULT); });
    if (outcome != CURLE_OK) {
        return Error{.code = ErrorCode::internal,
                     .message = std::string("libcurl cannot be initialized: ") +
                                curl_easy_strerror(outcome)};
    }
    return {};
}

}  // namespace polymux::transport
