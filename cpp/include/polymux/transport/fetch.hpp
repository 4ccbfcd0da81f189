// The fetcher with SSRF protection: the only way in which polymux fetches URLs from untrusted
// input.
//
//     const auto write = [&](std::span<const std::byte> piece) { return file.write(piece); };
//     const auto fetched = fetch(url, {}, write, {}, cancel);
//     if (!fetched) return fetched.error();
//     if (fetched->status >= 400) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "polymux/cancel.hpp"
#include "polymux/function_ref.hpp"
#include "polymux/result.hpp"
#include "polymux/transport/address.hpp"
#include "polymux/transport/fetch_policy.hpp"

namespace polymux::transport {

/// Limits of one fetch. Redirects are part of the fetch, so counts continue over all hops. Only
/// `connect_ms`, `header_bytes` and `header_count` start again at each hop.
struct FetchLimits {
    /// Size of the last response's body, both as received and as decoded, including the existing
    /// part if the fetch resumes. A larger declared size is rejected without reading.
    std::uint64_t body_bytes = std::uint64_t{256} * 1024 * 1024;
    std::uint32_t header_bytes = 64 * 1024;  ///< Status lines, headers and trailers.
    std::uint32_t header_count = 200;
    std::uint32_t connect_ms = 10'000;  ///< Name resolution, TCP and TLS together.
    std::uint32_t idle_ms = 20'000;     ///< Maximum wait for the next received byte.
    std::uint32_t total_ms = 300'000;   ///< From the call to its end.
    /// Minimum average in each `rate_window_ms` while receiving a body; 0 for none. The time in
    /// which the caller writes pieces does not count, neither here nor for `idle_ms`.
    std::uint32_t rate_bytes_per_s = 1'000;
    std::uint32_t rate_window_ms = 10'000;
    std::uint32_t redirects = 5;
};

/// Returns `invalid_argument` with the name of the first limit that is out of range.
Result<void> validate(const FetchLimits& limits);

/// Resolves all addresses of a name. `call` counts the lookups of one fetch from 0. Runs on a
/// separate thread, which can outlive the fetch, so it must own all data that it uses.
using Resolver = std::function<Result<std::vector<Address>>(const std::string& name, int call)>;

/// The part of a body that the caller already has, to request only the remainder.
struct FetchResume {
    std::uint64_t offset_bytes = 0;  ///< 0 requests the whole body.
    /// ETag of the response that the existing part came from; a changed resource is then not
    /// resumed. A weak tag is not sent.
    std::string etag{};
    std::optional<std::uint64_t> total_bytes{};  ///< Total length, if known.
};

/// The response whose body follows, with the data needed to request its remainder after an
/// interruption.
struct FetchStart {
    int status = 0;
    std::uint64_t offset = 0;  ///< Start of its body: `offset_bytes` of the request, or 0.
    std::optional<std::uint64_t> total_bytes{};  ///< Declared, including the skipped part.
    std::string etag{};                          ///< A strong entity tag; empty if missing.
    bool is_encoded = false;  ///< Content-encoded: ranges do not match decoded bytes.
};

struct FetchOptions {
    FetchPolicy policy{};
    FetchLimits limits{};
    std::string certificate_bundle{};  ///< Path in PEM; empty for the system's.
    Resolver resolver{};               ///< For tests; empty for the system's.
    FetchResume resume{};
    /// Called once before the first byte of the body. Its error ends the fetch unchanged.
    std::function<Result<void>(const FetchStart&)> started{};
};

/// Progress of a fetch, including the existing part if it resumes.
struct FetchProgress {
    std::uint64_t body_bytes = 0;                 ///< Decoded and delivered.
    std::optional<std::uint64_t> expected_bytes;  ///< Declared by the response, before decoding.
};

/// A response whose body was delivered completely. Its status may be any, for example 200 or 404.
struct Fetched {
    std::string url;  ///< Final URL after redirects, without the fragment.
    int status = 0;
    std::string content_type;  ///< As sent by the server; empty if missing.
    std::vector<std::pair<std::string, std::string>> headers;  ///< As received, in order.
    std::uint64_t body_bytes = 0;                              ///< Decoded.
    std::uint64_t received_bytes = 0;                          ///< Body size as sent by the server.
    std::uint32_t redirects = 0;
    std::uint64_t offset = 0;  ///< Start of the body: see `FetchStart`.
};

/// Receives the next decoded piece of the body. Its error ends the fetch unchanged.
using FetchSink = FunctionRef<Result<void>(std::span<const std::byte>)>;

/// Called about every 25 ms, also during waits. Its error ends the fetch unchanged.
using FetchCallback = FunctionRef<Result<void>(const FetchProgress&)>;

/// Fetches `url` with GET on the calling thread. Cancellation ends it within 50 ms.
///
/// A requested remainder arrives with status 206 and fits the existing part; otherwise the whole
/// body is delivered from its start. `started` reports which. A 206 that does not fit, and a status
/// that rejects ranges (400, 412, 416 and 501), is not read; the fetch then requests the whole body
/// once. `body_bytes` of the limits includes the existing part.
///
/// Errors: `url_refused` (also for redirects, and for too many of them, with "redirects" in
/// `stage`), `connect_failed`, `tls_failed`, `connection_lost` (also if the body is shorter than
/// declared), `timed_out` with the limit's name in `stage` ("connect", "idle", "rate" or "total"),
/// `answer_too_large`, `cancelled`, `invalid_argument` for limits, and those of `sink` and
/// `callback`. No error names an address.
Result<Fetched> fetch(std::string_view url, const FetchOptions& options, FetchSink sink,
                      FetchCallback callback, const CancelToken& cancel);

/// Destination of a URL, for a proxy that makes the connection: connect only to these addresses.
struct Destination {
    std::string host;  ///< Lower-case name, or address without brackets.
    std::uint16_t port = 0;
    std::vector<Address> addresses;
};

/// Checks a URL and the addresses of its host as `fetch` does, without connecting. Only the limits
/// `connect_ms` and `total_ms` apply.
///
/// Errors: `url_refused`, `connect_failed`, `timed_out`, `cancelled`, `invalid_argument`.
Result<Destination> resolve_destination(std::string_view url, const FetchOptions& options,
                                        const CancelToken& cancel);

}  // namespace polymux::transport
