// Converts the core's values to Python's.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "interpreter.hpp"
#include "polymux/contract/value.hpp"

namespace polymux::bindings {

/// JSON documents of at least this size are parsed without the GIL, and their memory is freed
/// afterwards.
inline constexpr std::size_t large_json_bytes = std::size_t{64} << 10U;

/// A str of valid UTF-8. GIL held.
py::object to_str(std::string_view utf8);

/// Names of members as str. Names repeat, so the last of each kind is cached, which also lets many
/// dicts share one. The texts must outlive it. GIL held.
class MemberNames {
public:
    py::object str(std::string_view name);

    /// Call for every created object: gives other threads a turn from time to time, because there
    /// can be millions of values.
    void yield_periodically() {
        if (++made_ % objects_per_yield == 0) without_gil([] {});
    }

private:
    static constexpr std::size_t objects_per_yield = 16 * 1024;

    std::size_t made_ = 0;
    struct Name {
        std::string_view text;
        py::object object;
    };
    std::array<Name, 64> names_;
};

/// None, bool, int, float, str, list or dict. A file has no value; the owner of the parts has it.
py::object to_python(const contract::ValueSource& value, MemberNames& names);

py::object to_python(const contract::Number& number);

}  // namespace polymux::bindings
