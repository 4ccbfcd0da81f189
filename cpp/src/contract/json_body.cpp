#include "polymux/contract/json_body.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "contract/json_value.hpp"
#include "json_reason.hpp"

namespace polymux::contract {

namespace {

std::string reason(simdjson::error_code code) {
    switch (code) {
        case simdjson::DEPTH_ERROR:
            return "is nested too deeply (allowed " + std::to_string(JsonReader::deepest) +
                   " levels)";
        case simdjson::T_ATOM_ERROR:
        case simdjson::F_ATOM_ERROR:
        case simdjson::N_ATOM_ERROR:
            return "contains an invalid word (allowed true, false and null)";
        default:
            return std::string(json_reason(code));
    }
}

Error invalid_body(std::string what) {
    return {.code = ErrorCode::invalid_argument,
            .message = "the request's body " + std::move(what)};
}

}  // namespace

class JsonReader::State {
public:
    simdjson::dom::parser parser;
    std::optional<JsonValue> value;
};

JsonReader::JsonReader() : state_(std::make_unique<State>()) {}
JsonReader::~JsonReader() = default;
JsonReader::JsonReader(JsonReader&&) noexcept = default;
JsonReader& JsonReader::operator=(JsonReader&&) noexcept = default;

Result<const ValueSource*> JsonReader::read(std::string_view body, std::size_t max_bytes) {
    state_->value.reset();
    if (body.size() > max_bytes) {
        return invalid_body("is too large (got " + std::to_string(body.size()) +
                            " bytes, allowed " + std::to_string(max_bytes) + ")");
    }
    constexpr std::size_t smallest = 16 * 1024;
    constexpr std::size_t first_refused = deepest + 1;
    if (state_->parser.capacity() < body.size() || state_->parser.max_depth() != first_refused) {
        const std::size_t capacity =
            std::max({body.size(), 2 * state_->parser.capacity(), smallest});
        if (state_->parser.allocate(capacity, first_refused) != simdjson::SUCCESS) {
            return Error{.code = ErrorCode::out_of_memory,
                         .message = "not enough memory to read the request's body"};
        }
    }
    simdjson::dom::element root;
    const simdjson::error_code code =
        state_->parser.parse(body.data(), body.size(), true).get(root);
    if (code != simdjson::SUCCESS) return invalid_body(reason(code));
    return &state_->value.emplace(root);
}

}  // namespace polymux::contract
