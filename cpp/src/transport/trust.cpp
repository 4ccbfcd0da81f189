#include "transport/trust.hpp"

#ifdef POLYMUX_OPENSSL
#include <openssl/err.h>
#include <openssl/opensslv.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <sys/stat.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "transport/process.hpp"
#endif

namespace polymux::transport {

namespace {

bool leave_it_to_libcurl(CURL* easy, const std::string& bundle) {
    return curl_easy_setopt(easy, CURLOPT_CAINFO, bundle.c_str()) == CURLE_OK;
}

#ifdef POLYMUX_OPENSSL

struct StoreFree {
    void operator()(X509_STORE* store) const noexcept { X509_STORE_free(store); }
};
using Store = std::unique_ptr<X509_STORE, StoreFree>;

/// Detects that a file was modified or replaced.
struct Stamp {
    dev_t device = 0;
    ino_t number = 0;
    off_t size_bytes = 0;
    time_t modified_s = 0;
    long modified_ns = 0;

    bool operator==(const Stamp&) const = default;
};

struct Parsed {
    Stamp stamp;
    Store store;
};

/// Only tests use more bundles than this; connections hold their own references.
constexpr std::size_t max_bundles = 16;

/// All parsed bundles of one process.
struct Shelf {
    const unsigned process = process_generation();
    std::mutex mutex;
    std::map<std::string, Parsed, std::less<>> parsed;
};

/// A forked child sees its parent's state, whose locks may be held forever. It creates a new one
/// and leaves the old one unused.
Shelf& shelf() {
    static std::atomic<Shelf*> current = std::make_unique<Shelf>().release();
    Shelf* found = current.load();
    if (found->process == process_generation()) return *found;
    auto fresh = std::make_unique<Shelf>();
    if (current.compare_exchange_strong(found, fresh.get())) return *fresh.release();
    return *found;
}

/// Returns null if the file has no readable certificate.
Store parse(const std::string& bundle) {
    Store store(X509_STORE_new());
    if (store == nullptr || X509_STORE_load_locations(store.get(), bundle.c_str(), nullptr) != 1) {
        ERR_clear_error();
        return nullptr;
    }
    // As in libcurl: an authority signed by another one is trusted if listed.
    X509_STORE_set_flags(store.get(), X509_V_FLAG_TRUSTED_FIRST | X509_V_FLAG_PARTIAL_CHAIN);
    return store;
}

/// For the file's current content; null if it has no certificates.
Store parsed_once(const std::string& bundle) {
    struct stat status{};
    if (stat(bundle.c_str(), &status) != 0) return nullptr;
    const Stamp stamp{.device = status.st_dev,
                      .number = status.st_ino,
                      .size_bytes = status.st_size,
                      .modified_s = status.st_mtim.tv_sec,
                      .modified_ns = status.st_mtim.tv_nsec};
    Shelf& all = shelf();
    // Other callers wait, because parsing a second time would take as long.
    const std::scoped_lock lock(all.mutex);
    auto known = all.parsed.find(bundle);
    if (known == all.parsed.end() || known->second.stamp != stamp) {
        Store store = parse(bundle);
        if (store == nullptr) return nullptr;
        if (known == all.parsed.end() && all.parsed.size() == max_bundles) all.parsed.clear();
        known = all.parsed.insert_or_assign(bundle, Parsed{stamp, std::move(store)}).first;
    }
    X509_STORE* const store = known->second.store.get();
    return Store(X509_STORE_up_ref(store) == 1 ? store : nullptr);
}

/// libcurl's CURLOPT_SSL_CTX_FUNCTION: `data` is the bundle's path.
CURLcode use_store(CURL* /*easy*/, void* context, void* data) noexcept {
    try {
        const Store store = parsed_once(*static_cast<const std::string*>(data));
        if (store == nullptr) return CURLE_SSL_CACERT_BADFILE;
        SSL_CTX_set1_cert_store(static_cast<SSL_CTX*>(context), store.get());
        return CURLE_OK;
    } catch (...) {
        return CURLE_OUT_OF_MEMORY;
    }
}

/// Whether libcurl uses the OpenSSL that this was compiled for; objects of another one are
/// incompatible.
bool is_by_this_openssl() noexcept {
    static const bool found = [] {
        const char* const version = curl_version_info(CURLVERSION_NOW)->ssl_version;
        const std::string wanted = "OpenSSL/" + std::to_string(OPENSSL_VERSION_MAJOR) + '.';
        return version != nullptr && std::string_view(version).starts_with(wanted);
    }();
    return found;
}

#endif

}  // namespace

bool trust(CURL* easy, const std::string& bundle) {
#ifdef POLYMUX_OPENSSL
    if (is_by_this_openssl()) {
        const auto path = std::addressof(const_cast<std::string&>(bundle));
        return curl_easy_setopt(easy, CURLOPT_CAINFO, static_cast<const char*>(nullptr)) ==
                   CURLE_OK &&
               curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, &use_store) == CURLE_OK &&
               curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, path) == CURLE_OK;
    }
#endif
    return leave_it_to_libcurl(easy, bundle);
}

}  // namespace polymux::transport
