// The guarded fetcher: the only way by which polymux fetches what a stranger names.
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

/// What one fetch may cost. Redirects are part of the fetch: what is counted goes on over all hops,
/// but for `connect_ms`, `header_bytes` and `header_count`, which each hop has anew.
struct FetchLimits {
    /// Of the last answer's body, as received and again as decoded, with what lies before it where
    /// it is a rest; declared, it is refused unread.
    std::uint64_t body_bytes = std::uint64_t{256} * 1024 * 1024;
    std::uint32_t header_bytes = 64 * 1024;  ///< Status lines, headers and trailers.
    std::uint32_t header_count = 200;
    std::uint32_t connect_ms = 10'000;  ///< Name, TCP and TLS together.
    std::uint32_t idle_ms = 20'000;     ///< Without a byte received, the wait for the first too.
    std::uint32_t total_ms = 300'000;   ///< From the call to its end.
    /// Least average over each `rate_window_ms` of receiving a body; 0 for none. The time that the
    /// caller takes to write pieces away does not count, here nor for `idle_ms`.
    std::uint32_t rate_bytes_per_s = 1'000;
    std::uint32_t rate_window_ms = 10'000;
    std::uint32_t redirects = 5;
};

/// `invalid_argument` naming the first limit that is out of its range.
Result<void> validate(const FetchLimits& limits);

/// All addresses of a name. `call` counts the look-ups of one fetch from 0. It runs on a thread of
/// its own, which goes on after the fetch has given up waiting: it owns all that it uses.
using Resolver = std::function<Result<std::vector<Address>>(const std::string& name, int call)>;

/// What the caller has of a body already, from the beginning, so that the rest alone is asked for.
struct FetchResume {
    std::uint64_t offset_bytes = 0;  ///< 0 asks for all of it.
    /// Of the answer that they came with, so that a rest of anything else does not come. What is no
    /// strong entity tag is not sent.
    std::string etag{};
    std::optional<std::uint64_t> total_bytes{};  ///< The length of all, where it is known.
};

/// The answer whose body comes next, and what it takes to ask for its rest should it break off.
struct FetchStart {
    int status = 0;
    std::uint64_t offset =
        0;  ///< Where its body begins: at `offset_bytes` of the request, or at 0.
    std::optional<std::uint64_t> total_bytes{};  ///< With what lies before the offset, as declared.
    std::string etag{};                          ///< A strong entity tag; empty where it has none.
    bool is_encoded = false;  ///< What is handed over is not what a server counts a rest by.
};

struct FetchOptions {
    FetchPolicy policy{};
    FetchLimits limits{};
    std::string certificate_bundle{};  ///< Path in PEM; empty for the system's.
    Resolver resolver{};               ///< For tests; empty for the system's.
    FetchResume resume{};
    /// Called before the first byte of the body, once; its error ends the fetch unchanged.
    std::function<Result<void>(const FetchStart&)> started{};
};

/// How far a fetch is, with what lay there before it where a rest comes.
struct FetchProgress {
    std::uint64_t body_bytes = 0;                 ///< Decoded and handed over.
    std::optional<std::uint64_t> expected_bytes;  ///< What the answer declared, before decoding.
};

/// An answer whose body was handed over whole. Its status may be any, 404 as well as 200.
struct Fetched {
    std::string url;  ///< Where the redirects ended, without the fragment.
    int status = 0;
    std::string content_type;  ///< As the server said; empty where it said nothing.
    std::vector<std::pair<std::string, std::string>> headers;  ///< As received, in their order.
    std::uint64_t body_bytes = 0;                              ///< Decoded.
    std::uint64_t received_bytes = 0;  ///< Of the body, as the server sent it.
    std::uint32_t redirects = 0;
    std::uint64_t offset = 0;  ///< Where the body begins: see `FetchStart`.
};

/// Takes the next piece of the body, which is decoded; its error ends the fetch unchanged.
using FetchSink = FunctionRef<Result<void>(std::span<const std::byte>)>;

/// Called every 25 ms or so, in waits too; its error ends the fetch unchanged.
using FetchCallback = FunctionRef<Result<void>(const FetchProgress&)>;

/// Fetches `url` with GET on the calling thread. Cancelling ends it within 50 ms.
///
/// A rest that is asked for comes with status 206 and fits what the caller has, or all is handed
/// over from its beginning: `started` tells which. An answer 206 that does not fit, and a status by
/// which ranges are refused (400, 412, 416 and 501), are not read: all is asked for instead, once.
/// `body_bytes` of the limits counts what lies before a rest.
///
/// Errors: `url_refused` (also by a redirect, and for too many of them, with "redirects" in
/// `stage`), `connect_failed`, `tls_failed`, `connection_lost` (also where less came than was
/// declared), `timed_out` with the limit's name in `stage` ("connect", "idle", "rate" or "total"),
/// `answer_too_large`, `cancelled`, `invalid_argument` for limits, and those of `sink` and
/// `callback`. None names an address.
Result<Fetched> fetch(std::string_view url, const FetchOptions& options, FetchSink sink,
                      FetchCallback callback, const CancelToken& cancel);

/// Where a URL leads, for a proxy that connects by itself: to these addresses, and to no others.
struct Destination {
    std::string host;  ///< Name in lower case, or address without brackets.
    std::uint16_t port = 0;
    std::vector<Address> addresses;
};

/// Judges a URL and the addresses of its host as `fetch` does, and connects to nothing. The limits
/// that count are `connect_ms` and `total_ms`.
///
/// Errors: `url_refused`, `connect_failed`, `timed_out`, `cancelled`, `invalid_argument`.
Result<Destination> resolve_destination(std::string_view url, const FetchOptions& options,
                                        const CancelToken& cancel);

}  // namespace polymux::transport
