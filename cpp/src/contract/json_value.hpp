// Adapts simdjson's values to the checker.
#pragma once

#include <simdjson.h>

#include "polymux/contract/value.hpp"

namespace polymux::contract {

class JsonValue final : public ValueSource {
public:
    explicit JsonValue(simdjson::dom::element element) : element_(element) {}

    const simdjson::dom::element& element() const noexcept { return element_; }

    ValueType type() const override;
    std::size_t text_length(std::size_t limit) const override;
    std::string_view text_head(std::size_t code_points) const override;
    Number number() const override;
    bool boolean() const override;
    std::size_t size() const override;
    void members(Member visit) const override;
    void items(Item visit) const override;

private:
    simdjson::dom::element element_;
};

}  // namespace polymux::contract
