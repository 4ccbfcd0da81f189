#include "server/tls.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <climits>

namespace polymux::server {

namespace {

constexpr std::array<unsigned char, 9> only_http_1_1{8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

Error invalid_file(const char* what, const std::string& path) {
    const unsigned long code = ERR_peek_last_error();
    const char* const reason = ERR_reason_error_string(code);
    ERR_clear_error();
    return {.code = ErrorCode::invalid_argument,
            .message = std::string("invalid TLS ") + what + " " + path + ": " +
                       (reason == nullptr ? "unknown error" : reason)};
}

/// Without this, OpenSSL would ask for a passphrase on the terminal.
int no_passphrase(char*, int, int, void*) {
    return 0;
}

int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                    const unsigned char* offered, unsigned int offered_size, void*) {
    unsigned char* found = nullptr;
    if (SSL_select_next_proto(&found, chosen_size, only_http_1_1.data(), only_http_1_1.size(),
                              offered, offered_size) != OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_NOACK;
    }
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::load(const std::string& certificate,
                                                     const std::string& key) {
    auto context = std::make_shared<TlsContext>(SSL_CTX_new(TLS_server_method()));
    SSL_CTX* const raw = context->get();
    if (raw == nullptr) return Error{.code = ErrorCode::out_of_memory, .message = "out of memory"};
    SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
    SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_default_passwd_cb(raw, no_passphrase);
    SSL_CTX_set_alpn_select_cb(raw, choose_protocol, nullptr);
    if (SSL_CTX_use_certificate_chain_file(raw, certificate.c_str()) != 1) {
        return invalid_file("certificate", certificate);
    }
    if (SSL_CTX_use_PrivateKey_file(raw, key.c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(raw) != 1) {
        return invalid_file("key", key);
    }
    return context;
}

void TlsContext::Free::operator()(SSL_CTX* context) const noexcept {
    SSL_CTX_free(context);
}

TlsStream::TlsStream(const TlsContext& context, int descriptor) : stream_(SSL_new(context.get())) {
    if (stream_ != nullptr && SSL_set_fd(stream_.get(), descriptor) != 1) stream_.reset();
}

void TlsStream::Free::operator()(SSL* stream) const noexcept {
    SSL_free(stream);
}

TlsStream::Status TlsStream::status_of(int result) const noexcept {
    switch (SSL_get_error(stream_.get(), result)) {
        case SSL_ERROR_NONE:
            return Status::done;
        case SSL_ERROR_WANT_READ:
            return Status::wants_input;
        case SSL_ERROR_WANT_WRITE:
            return Status::wants_output;
        case SSL_ERROR_ZERO_RETURN:
            return Status::ended;
        default:
            ERR_clear_error();
            return Status::failed;
    }
}

TlsStream::Status TlsStream::shake_hands() {
    if (stream_ == nullptr) return Status::failed;
    ERR_clear_error();
    return status_of(SSL_accept(stream_.get()));
}

TlsStream::Outcome TlsStream::receive(std::span<char> buffer) {
    ERR_clear_error();
    Outcome outcome;
    outcome.status =
        status_of(SSL_read_ex(stream_.get(), buffer.data(), buffer.size(), &outcome.bytes));
    return outcome;
}

TlsStream::Outcome TlsStream::send(std::string_view bytes) {
    ERR_clear_error();
    Outcome outcome;
    outcome.status =
        status_of(SSL_write_ex(stream_.get(), bytes.data(), bytes.size(), &outcome.bytes));
    return outcome;
}

std::uint64_t TlsStream::written_bytes() const noexcept {
    return stream_ == nullptr ? 0 : BIO_number_written(SSL_get_wbio(stream_.get()));
}

void TlsStream::shut_down() noexcept {
    if (stream_ == nullptr || SSL_in_init(stream_.get()) != 0) return;
    ERR_clear_error();
    SSL_shutdown(stream_.get());
    ERR_clear_error();
}

}  // namespace polymux::server
