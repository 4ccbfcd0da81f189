// A received form, whose fields are text, as input of the checker.
#pragma once

#include <string_view>
#include <vector>

#include "polymux/contract/value.hpp"

namespace polymux::contract {

struct FormPart {
    std::string_view name;
    std::string_view text = {};  ///< UTF-8; empty for a file.
    bool is_file = false;
};

/// The parts as an object, each a member whose value is text or a file. The parts must outlive it.
class FormBody final : public ValueSource {
public:
    explicit FormBody(const std::vector<FormPart>& parts) : parts_(parts) {}

    ValueType type() const override { return type_object; }
    std::size_t size() const override { return parts_.size(); }
    void members(Member visit) const override;

private:
    const std::vector<FormPart>& parts_;
};

}  // namespace polymux::contract
