// curl_easy_loop URL COUNT [FILE]: the floor under a client made of libcurl.
//
// One handle, reused: COUNT requests by curl_easy_perform, each a small POST of JSON, or an upload
// of FILE. Prints user and system CPU seconds as JSON.

#include <curl/curl.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "usage.hpp"

namespace {

constexpr const char* kBody =
    R"({"model":"llama-3.3-70b-versatile","messages":[{"role":"user","content":)"
    R"("Why is the sky blue? Answer in two sentences."}],"temperature":0.7})";
// More costs more here: what is copied then falls out of the processor's cache.
constexpr long kUploadBufferBytes = 80 * 1024;

using Handle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using List = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

std::size_t take(char* data, std::size_t size, std::size_t count, void* answer) {
    static_cast<std::string*>(answer)->append(data, size * count);
    return size * count;
}

std::size_t give(char* data, std::size_t size, std::size_t count, void* file) {
    return std::fread(data, size, count, static_cast<std::FILE*>(file));
}

List headers(const char* content_type) {
    curl_slist* list = curl_slist_append(nullptr, content_type);
    list = curl_slist_append(list, "Authorization: Bearer floor-token");
    list = curl_slist_append(list, "Expect:");
    return {list, curl_slist_free_all};
}

int fail(const char* what) {
    std::fprintf(stderr, "curl_easy_loop: %s\n", what);
    return 1;
}

}  // namespace

int main(int argument_count, char** arguments) {
    if (argument_count < 3) return fail("URL COUNT [FILE]");
    const unsigned long long count = std::strtoull(arguments[2], nullptr, 10);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    const Handle handle(curl_easy_init(), curl_easy_cleanup);
    const File file(argument_count > 3 ? std::fopen(arguments[3], "rb") : nullptr,
                    [](std::FILE* one) { return one == nullptr ? 0 : std::fclose(one); });
    if (argument_count > 3 && !file) return fail("the file cannot be read");
    const List list =
        headers(file ? "Content-Type: application/octet-stream" : "Content-Type: application/json");
    std::string answer;
    CURL* const curl = handle.get();
    curl_easy_setopt(curl, CURLOPT_URL, arguments[1]);
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list.get());
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
    if (file) {
        std::fseek(file.get(), 0, SEEK_END);
        const long size = std::ftell(file.get());
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(size));
        curl_easy_setopt(curl, CURLOPT_READFUNCTION, give);
        curl_easy_setopt(curl, CURLOPT_READDATA, file.get());
        curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, kUploadBufferBytes);
    } else {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, kBody);
    }
    const floors::Meter meter;
    for (unsigned long long number = 0; number < count; ++number) {
        answer.clear();
        if (file) std::rewind(file.get());
        const CURLcode result = curl_easy_perform(curl);
        long status = 0;
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        if (result != CURLE_OK) return fail(curl_easy_strerror(result));
        if (status != 200 || answer.empty()) return fail("an answer is not right");
    }
    meter.report("requests", count);
    return 0;
}
