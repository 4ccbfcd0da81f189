// ASGI's description of a request.
#pragma once

#include "interpreter.hpp"
#include "polymux/server/exchange.hpp"

namespace polymux::bindings {

/// The connection scope of ASGI 3.0 for an HTTP request.
py::dict asgi_scope(const server::Exchange& exchange);

}  // namespace polymux::bindings
