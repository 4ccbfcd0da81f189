#include "polymux/version.hpp"

namespace polymux {

const char* version() noexcept {
    return POLYMUX_VERSION;
}

}  // namespace polymux
