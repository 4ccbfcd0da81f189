// curl_multi_loop URL COUNT CONCURRENCY: the floor under a client made of libcurl that has many
// requests at work at once.
//
// One multi handle, waited for with curl_multi_poll; as many easy handles as requests at once, each
// used again. Every request is a small POST of JSON. Prints user and system CPU seconds as JSON.

#include <curl/curl.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "usage.hpp"

namespace {

constexpr const char* kBody =
    R"({"model":"llama-3.3-70b-versatile","messages":[{"role":"user","content":)"
    R"("Why is the sky blue? Answer in two sentences."}],"temperature":0.7})";
constexpr int kLongestWaitMs = 30'000;

using Multi = std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)>;
using List = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

struct Request {
    std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy{curl_easy_init(), curl_easy_cleanup};
    std::string answer;
};

std::size_t take(char* data, std::size_t size, std::size_t count, void* answer) {
    static_cast<std::string*>(answer)->append(data, size * count);
    return size * count;
}

void configure(Request& request, const char* url, curl_slist* list) {
    CURL* const curl = request.easy.get();
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, kBody);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &request.answer);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, &request);
}

int fail(const char* what) {
    std::fprintf(stderr, "curl_multi_loop: %s\n", what);
    return 1;
}

// One request after another in each of the handles; false when one has failed.
bool run(CURLM* multi, std::vector<Request>& requests, unsigned long long count) {
    unsigned long long begun = 0;
    unsigned long long done = 0;
    for (Request& request : requests) {
        if (begun++ < count) curl_multi_add_handle(multi, request.easy.get());
    }
    while (done < count) {
        int running = 0;
        curl_multi_perform(multi, &running);
        int left = 0;
        while (const CURLMsg* const message = curl_multi_info_read(multi, &left)) {
            CURL* const easy = message->easy_handle;
            const CURLcode result = message->data.result;
            char* found = nullptr;
            curl_easy_getinfo(easy, CURLINFO_PRIVATE, &found);
            auto& request = *reinterpret_cast<Request*>(found);
            if (result != CURLE_OK || request.answer.empty()) return false;
            curl_multi_remove_handle(multi, easy);
            request.answer.clear();
            ++done;
            if (begun < count) {
                ++begun;
                curl_multi_add_handle(multi, easy);
            }
        }
        if (done < count) curl_multi_poll(multi, nullptr, 0, kLongestWaitMs, nullptr);
    }
    return true;
}

}  // namespace

int main(int argument_count, char** arguments) {
    if (argument_count != 4) return fail("URL COUNT CONCURRENCY");
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    const unsigned long long count = std::strtoull(arguments[2], nullptr, 10);
    const unsigned long long concurrency = std::strtoull(arguments[3], nullptr, 10);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    curl_slist* nodes = curl_slist_append(nullptr, "Content-Type: application/json");
    nodes = curl_slist_append(nodes, "Authorization: Bearer floor-token");
    nodes = curl_slist_append(nodes, "Expect:");
    const List list(nodes, curl_slist_free_all);
    std::vector<Request> requests(concurrency);
    const Multi multi(curl_multi_init(), curl_multi_cleanup);
    curl_multi_setopt(multi.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(concurrency));
    for (Request& request : requests) configure(request, arguments[1], list.get());
    // The connections are made before the clock starts, as they are for the other clients.
    if (!run(multi.get(), requests, concurrency)) return fail("a request has failed");
    const floors::Meter meter;
    if (!run(multi.get(), requests, count)) return fail("a request has failed");
    meter.report("requests", count);
    for (Request& request : requests) request.easy.reset();
    return 0;
}
