#include "contract/json_value.hpp"

#include "contract/utf8.hpp"

namespace polymux::contract {

using simdjson::dom::element_type;

ValueType JsonValue::type() const {
    switch (element_.type()) {
        case element_type::STRING:
            return type_string;
        case element_type::INT64:
        case element_type::UINT64:
            return type_integer;
        case element_type::DOUBLE:
            return type_number;
        case element_type::BOOL:
            return type_boolean;
        case element_type::ARRAY:
            return type_array;
        case element_type::OBJECT:
            return type_object;
        case element_type::NULL_VALUE:
            break;
    }
    return type_null;
}

std::size_t JsonValue::text_length(std::size_t limit) const {
    return count_characters(element_.get_string().value_unsafe(), limit);
}

std::string_view JsonValue::text_head(std::size_t code_points) const {
    return first_characters(element_.get_string().value_unsafe(), code_points);
}

Number JsonValue::number() const {
    if (element_.is_int64()) {
        const std::int64_t value = element_.get_int64().value_unsafe();
        return {.value = static_cast<double>(value), .integer = value, .is_integer = true};
    }
    const bool beyond = element_.is_uint64();
    return {.value = element_.get_double().value_unsafe(), .is_integer = beyond, .fits = !beyond};
}

bool JsonValue::boolean() const {
    return element_.get_bool().value_unsafe();
}

std::size_t JsonValue::size() const {
    // The parser's count saturates at 24 bits.
    constexpr std::size_t saturated = 0xFFFFFF;
    if (element_.is_array()) {
        const simdjson::dom::array array = element_.get_array().value_unsafe();
        if (array.size() < saturated) return array.size();
        return static_cast<std::size_t>(std::distance(array.begin(), array.end()));
    }
    const simdjson::dom::object object = element_.get_object().value_unsafe();
    if (object.size() < saturated) return object.size();
    return static_cast<std::size_t>(std::distance(object.begin(), object.end()));
}

void JsonValue::members(Member visit) const {
    const simdjson::dom::object object = element_.get_object().value_unsafe();
    for (const auto& [name, value] : object) {
        if (!visit(name, JsonValue(value))) return;
    }
}

void JsonValue::items(Item visit) const {
    const simdjson::dom::array array = element_.get_array().value_unsafe();
    for (const simdjson::dom::element value : array) {
        if (!visit(JsonValue(value))) return;
    }
}

}  // namespace polymux::contract
