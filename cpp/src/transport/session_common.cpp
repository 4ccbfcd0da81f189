#include "transport/session_common.hpp"

#include <utility>

#include "transport/certificates.hpp"

namespace polymux::transport {

SessionCommon::SessionCommon(SessionOptions given) : options(std::move(given)) {
    for (const std::string& field : options.headers) header_nodes.add(field.c_str());
    headers = header_nodes.link(nullptr);
    auto bundle = certificate_bundle(options.certificates);
    if (bundle) {
        certificates = *std::move(bundle);
    } else {
        no_certificates = std::move(bundle.error());
    }
}

}  // namespace polymux::transport
