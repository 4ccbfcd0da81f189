// A received JSON body, parsed as input of the checker.
//
//     contract::JsonReader reader;  // keeps its memory between bodies; one for each thread
//     auto body = reader.read(bytes);
//     if (!body) return body.error();
//     contract::Report report = contract::check(operation, variant, **body, Side::server);
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "polymux/contract/value.hpp"
#include "polymux/result.hpp"

namespace polymux::contract {

/// Parses strictly: RFC 8259, UTF-8 without overlong forms or surrogates, numbers within 64 bits or
/// a double, one document without trailing data. Skips a leading byte order mark.
class JsonReader {
public:
    static constexpr std::size_t deepest = 200;

    JsonReader();
    ~JsonReader();
    JsonReader(JsonReader&&) noexcept;
    JsonReader& operator=(JsonReader&&) noexcept;

    /// Returns the document's value, valid until the next `read`. Fails if the body is empty, not
    /// JSON, nested deeper than `deepest`, or longer than `max_bytes`.
    Result<const ValueSource*> read(std::string_view body, std::size_t max_bytes = 32U << 20U);

private:
    class State;
    std::unique_ptr<State> state_;
};

}  // namespace polymux::contract
