// State that the parts of a front share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "polymux/http1/parser.hpp"
#include "polymux/server/front.hpp"
#include "server/connection_limit.hpp"
#include "server/events.hpp"
#include "server/published_rules.hpp"
#include "server/refused_log.hpp"
#include "server/tls.hpp"

namespace polymux::server {

/// Limit of a request line, a field, and all fields.
constexpr std::size_t max_head_bytes = std::size_t{64} << 10U;

struct Shared {
    Shared(const FrontOptions& given, FileDescriptor event, std::shared_ptr<TlsContext> with_tls)
        : options(given),
          tls(std::move(with_tls)),
          limit(std::make_shared<ConnectionLimit>(given.max_connections,
                                                  given.max_connections_per_network)),
          events(std::move(event)) {}

    const FrontOptions options;
    const std::shared_ptr<TlsContext> tls;  ///< Null without TLS.
    const http1::Limits parser_limits{.max_start_line_bytes = max_head_bytes,
                                      .max_field_bytes = max_head_bytes,
                                      .max_fields_bytes = max_head_bytes};
    const std::shared_ptr<ConnectionLimit> limit;
    Mailbox<Event> events;
    PublishedRules rules;
    RefusedLog refused;
    std::atomic<bool> is_draining = false;
    std::atomic<std::size_t> connections = 0;
    std::atomic<std::uint64_t> received_bytes = 0;
    std::atomic<std::uint64_t> dropped_bytes = 0;
};

/// How exchanges reach their thread. They may outlive it.
struct Outbox {
    Outbox(FileDescriptor event, std::shared_ptr<Shared> of)
        : commands(std::move(event)), shared(std::move(of)) {}

    Mailbox<Command> commands;
    const std::shared_ptr<Shared> shared;
};

}  // namespace polymux::server
