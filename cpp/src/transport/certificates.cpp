#include "transport/certificates.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace polymux::transport {
namespace {

constexpr std::array variables{"SSL_CERT_FILE", "CURL_CA_BUNDLE"};
constexpr std::array system_files{
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch, Alpine
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // Fedora, RHEL
    "/etc/pki/tls/certs/ca-bundle.crt",                   // older RHEL, CentOS
    "/etc/ssl/ca-bundle.pem",                             // openSUSE
    "/etc/pki/tls/cacert.pem",                            // OpenELEC
    "/etc/ssl/cert.pem",                                  // Alpine, BSD, macOS
};

bool is_readable_file(const char* path) noexcept {
    struct stat status{};
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, R_OK) == 0;
}

Result<std::string> named_bundle(const std::string& path, const std::string& title) {
    if (is_readable_file(path.c_str())) return path;
    return Error{.code = ErrorCode::tls_failed,
                 .message = title + " is not a readable file",
                 .input_name = path,
                 .stage = "tls"};
}

Result<std::string> search() {
    for (const char* const variable : variables) {
        const char* const path = std::getenv(variable);
        if (path != nullptr && *path != '\0') {
            return named_bundle(path, std::string("the certificate bundle set by ") + variable);
        }
    }
    for (const char* const path : system_files) {
        if (is_readable_file(path)) return std::string(path);
    }
    return Error{.code = ErrorCode::tls_failed,
                 .message =
                     "this system has no CA certificates. Install the system package "
                     "ca-certificates, or set SSL_CERT_FILE to a CA bundle (PEM)",
                 .stage = "tls"};
}

}  // namespace

Result<std::string> certificate_bundle(const std::string& explicit_path) {
    if (!explicit_path.empty()) {
        return named_bundle(explicit_path, "the configured certificate bundle");
    }
    static const Result<std::string> found = search();
    return found;
}

}  // namespace polymux::transport
