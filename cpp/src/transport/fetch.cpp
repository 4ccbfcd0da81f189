#include "polymux/transport/fetch.hpp"

#include <array>
#include <new>
#include <optional>

#include "transport/certificates.hpp"
#include "transport/checked_url.hpp"
#include "transport/curl.hpp"
#include "transport/descriptors.hpp"
#include "transport/failures.hpp"
#include "transport/fetch_hop.hpp"
#include "transport/fetch_monitor.hpp"
#include "transport/look_up.hpp"
#include "transport/url_text.hpp"

namespace polymux::transport {
namespace {

constexpr std::uint64_t max_ms = 7ULL * 24 * 3600 * 1000;

/// Names the redirect in the error of the `redirects`-th target. Leaves the error of the original
/// URL unchanged.
Error at_redirect(Error error, std::uint32_t redirects) {
    if (redirects == 0 || error.code != ErrorCode::url_refused) return error;
    std::string_view why = error.message;
    if (why.starts_with(refused_url_prefix)) why.remove_prefix(refused_url_prefix.size());
    error.message = "redirect " + std::to_string(redirects) + " is refused: " + std::string(why);
    return error;
}

Error too_many(std::uint32_t redirects) {
    Error error = refused_url("too many redirects (limit " + std::to_string(redirects) + ")");
    error.stage = "redirects";
    return error;
}

/// Returns all addresses of a URL's host if connections to all are allowed.
Result<std::vector<Address>> checked_addresses(const CheckedUrl& url, const FetchOptions& options,
                                               int call, Clock::time_point deadline,
                                               FetchMonitor& monitor) {
    std::vector<Address> addresses;
    if (url.address) {
        addresses.push_back(*url.address);
    } else {
        auto found = look_up(url.host, options.resolver, call, deadline, monitor);
        if (!found) return found.error();
        addresses = std::move(*found);
    }
    if (auto checked = check_addresses(addresses, url, options.policy); !checked) {
        return checked.error();
    }
    return addresses;
}

class Fetch {
public:
    Fetch(const FetchOptions& options, FetchSink sink, FetchCallback callback,
          const CancelToken& cancel)
        : options_(options),
          sink_(sink),
          resume_(options.resume),
          monitor_(milliseconds(options.limits.total_ms), callback, cancel) {}

    Result<Fetched> run(const std::string& text) {
        auto fetched = follow(text);
        if (fetched && !*fetched) {
            // Without a requested remainder, no response can mismatch.
            resume_ = {};
            fetched = follow(text);
        }
        if (!fetched) return fetched.error();
        return std::move(**fetched);
    }

private:
    /// Returns nullopt if a remainder was requested, and the response is neither that nor the whole
    /// body.
    Result<std::optional<Fetched>> follow(std::string text) {
        came_by_https_ = false;
        for (std::uint32_t redirects = 0;; ++redirects) {
            auto url = check_url(text, options_.policy);
            if (!url) return at_redirect(url.error(), redirects);
            if (came_by_https_ && !url->is_https) {
                return at_redirect(refused_url("it leads from https to http"), redirects);
            }
            came_by_https_ = url->is_https;
            auto response = hop(*url);
            if (!response) return at_redirect(response.error(), redirects);
            if (response->range_refused) return std::optional<Fetched>();
            if (!response->location) {
                return std::optional(fetched(std::move(*url), std::move(*response), redirects));
            }
            if (redirects == options_.limits.redirects) {
                return too_many(redirects);
            }
            auto next = resolve_location(*url, *response->location);
            if (!next) return at_redirect(next.error(), redirects + 1);
            text = std::move(*next);
        }
    }

    Result<HopResponse> hop(const CheckedUrl& url) {
        if (auto goes_on = monitor_.check(); !goes_on) return goes_on.error();
        const auto deadline = Clock::now() + milliseconds(options_.limits.connect_ms);
        std::string bundle;
        const bool verified = !url.host_allowed || options_.policy.verify_allowed_hosts;
        if (url.is_https && verified) {
            auto found = certificate_bundle(options_.certificate_bundle);
            if (!found) return found.error();
            bundle = std::move(*found);
        }
        auto addresses = checked_addresses(url, options_, look_ups_, deadline, monitor_);
        if (!addresses) return addresses.error();
        if (!url.address) ++look_ups_;
        return run_hop({.url = url,
                        .addresses = *addresses,
                        .options = options_,
                        .resume = resume_,
                        .certificate_bundle = std::move(bundle),
                        .connect_deadline = deadline,
                        .verified = verified},
                       sink_, monitor_);
    }

    static Fetched fetched(CheckedUrl url, HopResponse response, std::uint32_t redirects) {
        const std::string* const type = find_header(response.headers, "content-type");
        return {.url = std::move(url.text),
                .status = response.status,
                .content_type = type != nullptr ? *type : std::string(),
                .headers = std::move(response.headers),
                .body_bytes = response.body_bytes,
                .received_bytes = response.received_bytes,
                .redirects = redirects,
                .offset = response.offset};
    }

    const FetchOptions& options_;
    FetchSink sink_;
    FetchResume resume_;
    FetchMonitor monitor_;
    int look_ups_ = 0;
    bool came_by_https_ = false;
};

}  // namespace

Result<void> validate(const FetchLimits& limits) {
    struct Range {
        const char* name;
        std::uint64_t value;
        std::uint64_t min;
        std::uint64_t max;
    };
    const std::array ranges{
        Range{"body_bytes", limits.body_bytes, 0, std::uint64_t{1} << 50},
        Range{"header_bytes", limits.header_bytes, 1, 96 * 1024},
        Range{"header_count", limits.header_count, 1, 10'000},
        Range{"connect_ms", limits.connect_ms, 1, max_ms},
        Range{"idle_ms", limits.idle_ms, 1, max_ms},
        Range{"total_ms", limits.total_ms, 1, max_ms},
        Range{"rate_bytes_per_s", limits.rate_bytes_per_s, 0, 1'000'000'000},
        Range{"rate_window_ms", limits.rate_window_ms, 100, max_ms},
        Range{"redirects", limits.redirects, 0, 20},
    };
    for (const Range& range : ranges) {
        if (range.value < range.min || range.value > range.max) {
            return Error{.code = ErrorCode::invalid_argument,
                         .message = std::string("limits.") + range.name + ": out of range (got " +
                                    std::to_string(range.value) + ", allowed " +
                                    std::to_string(range.min) + " to " + std::to_string(range.max) +
                                    ")"};
        }
    }
    return {};
}

Result<Fetched> fetch(std::string_view url, const FetchOptions& options, FetchSink sink,
                      FetchCallback callback, const CancelToken& cancel) {
    try {
        if (auto valid = validate(options.limits); !valid) return valid.error();
        if (auto ready = initialise_curl(); !ready) return ready.error();
        close_inherited();
        return Fetch(options, sink, callback, cancel)
            .run(std::string(url.substr(0, max_url_bytes + 1)));
    } catch (const std::bad_alloc&) {
        return no_memory();
    }
}

Result<Destination> resolve_destination(std::string_view url, const FetchOptions& options,
                                        const CancelToken& cancel) {
    try {
        if (auto valid = validate(options.limits); !valid) return valid.error();
        if (auto ready = initialise_curl(); !ready) return ready.error();
        auto checked = check_url(url, options.policy);
        if (!checked) return checked.error();
        const auto ignore = [](const FetchProgress&) -> Result<void> { return {}; };
        FetchMonitor monitor(milliseconds(options.limits.total_ms), ignore, cancel);
        const auto deadline = Clock::now() + milliseconds(options.limits.connect_ms);
        auto addresses = checked_addresses(*checked, options, 0, deadline, monitor);
        if (!addresses) return addresses.error();
        return Destination{.host = std::move(checked->host),
                           .port = checked->port,
                           .addresses = std::move(*addresses)};
    } catch (const std::bad_alloc&) {
        return no_memory();
    }
}

}  // namespace polymux::transport
