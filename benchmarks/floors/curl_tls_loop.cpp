// curl_tls_loop URL COUNT CERTIFICATES default|cached: what a new TLS connection costs with
// libcurl.
//
// COUNT requests by one handle, each over a connection of its own, with the authorities of the file
// CERTIFICATES. `default` leaves the folder of certificates as libcurl was built with; `cached` has
// none, so that libcurl may keep what it read of the file. Prints user and system CPU seconds.

#include <curl/curl.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "usage.hpp"

namespace {

using Handle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;

std::size_t take(char* data, std::size_t size, std::size_t count, void* answer) {
    static_cast<std::string*>(answer)->append(data, size * count);
    return size * count;
}

int fail(const char* what) {
    std::fprintf(stderr, "curl_tls_loop: %s\n", what);
    return 1;
}

}  // namespace

int main(int argument_count, char** arguments) {
    if (argument_count != 5) return fail("URL COUNT CERTIFICATES default|cached");
    const unsigned long long count = std::strtoull(arguments[2], nullptr, 10);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    const Handle handle(curl_easy_init(), curl_easy_cleanup);
    std::string answer;
    CURL* const curl = handle.get();
    curl_easy_setopt(curl, CURLOPT_URL, arguments[1]);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "{}");
    curl_easy_setopt(curl, CURLOPT_CAINFO, arguments[3]);
    if (std::string_view(arguments[4]) == "cached") {
        curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
    }
    curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
    // The first reads the file in any case.
    if (curl_easy_perform(curl) != CURLE_OK) return fail("the first request has failed");
    const floors::Meter meter;
    for (unsigned long long number = 0; number < count; ++number) {
        answer.clear();
        const CURLcode result = curl_easy_perform(curl);
        if (result != CURLE_OK) return fail(curl_easy_strerror(result));
        if (answer.empty()) return fail("an answer is empty");
    }
    meter.report("requests", count);
    return 0;
}
