// TLS on the server's side, with OpenSSL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "polymux/result.hpp"

// OpenSSL's types, so that only the implementation needs its headers.
struct ssl_ctx_st;
struct ssl_st;

namespace polymux::server {

/// A certificate and its key, for all connections.
class TlsContext {
public:
    /// Paths of PEM files: the certificate with its chain, and the key without a passphrase.
    static Result<std::shared_ptr<TlsContext>> load(const std::string& certificate,
                                                    const std::string& key);
    explicit TlsContext(ssl_ctx_st* context) noexcept : context_(context) {}

    [[nodiscard]] ssl_ctx_st* get() const noexcept { return context_.get(); }

private:
    struct Free {
        void operator()(ssl_ctx_st* context) const noexcept;
    };
    std::unique_ptr<ssl_ctx_st, Free> context_;
};

/// One connection. Calls on a non-blocking socket.
class TlsStream {
public:
    enum class Status : std::uint8_t {
        done,
        wants_input,
        wants_output,
        ended,  ///< The peer has said that it sends no more.
        failed,
    };
    struct Outcome {
        Status status = Status::failed;
        std::size_t bytes = 0;
    };

    /// `failed` from each call if OpenSSL has no memory.
    TlsStream(const TlsContext& context, int descriptor);

    Status shake_hands();
    Outcome receive(std::span<char> buffer);
    Outcome send(std::string_view bytes);
    /// How many bytes the socket has accepted, encrypted.
    [[nodiscard]] std::uint64_t written_bytes() const noexcept;
    /// Says that nothing more will be sent, without waiting.
    void shut_down() noexcept;

private:
    [[nodiscard]] Status status_of(int result) const noexcept;

    struct Free {
        void operator()(ssl_st* stream) const noexcept;
    };
    std::unique_ptr<ssl_st, Free> stream_;
};

}  // namespace polymux::server
