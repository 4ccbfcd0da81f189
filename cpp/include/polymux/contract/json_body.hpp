// A received JSON body, parsed and ready for the checker.
//
//     contract::JsonReader reader;  // keeps its memory from body to body; one for each thread
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

/// Parses strictly: RFC 8259, UTF-8 without overlong forms or surrogates, numbers within 64 bits
/// and a double, one document and nothing after it. A byte order mark in front is skipped.
class JsonReader {
public:
    static constexpr std::size_t deepest = 200;

    JsonReader();
    ~JsonReader();
    JsonReader(JsonReader&&) noexcept;
    JsonReader& operator=(JsonReader&&) noexcept;

    /// The document's value, good until the next `read`. Fails where the body is empty, no JSON,
    /// nested deeper than `deepest`, or longer than `max_bytes`.
    Result<const ValueSource*> read(std::string_view body, std::size_t max_bytes = 32U << 20U);

private:
    class State;
    std::unique_ptr<State> state_;
};

}  // namespace polymux::contract
