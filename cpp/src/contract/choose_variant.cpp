#include <algorithm>
#include <string>
#include <utility>

#include "contract/display.hpp"
#include "polymux/contract/check.hpp"

namespace polymux::contract {

namespace {

Error invalid_request(const Operation& operation, std::string message) {
    return {.code = ErrorCode::invalid_argument,
            .message = std::string(operation.name) + ": " + std::move(message)};
}

std::string models(const Operation& operation) {
    std::string text;
    for (const Variant& variant : operation.variants) {
        text += (text.empty() ? "" : ", ") + std::string(variant.model);
    }
    return text;
}

Error not_taken(const Operation& operation, const char* name) {
    return {.code = ErrorCode::unsupported_encoding,
            .message = std::string(operation.name) + ": does not accept a body of type " + name};
}

Result<const Variant*> variant_of(const Operation& operation, std::string_view model) {
    const Variant* const found = operation.find_variant(model);
    if (found == nullptr) {
        return invalid_request(operation, "unknown model " + quoted_text(model) +
                                              " (known: " + models(operation) + ')');
    }
    return found;
}

}  // namespace

Result<const Variant*> choose_variant(const Operation& operation,
                                      std::optional<std::string_view> model, Encoding encoding) {
    const char* const name =
        encoding == Encoding::json ? "application/json" : "multipart/form-data";
    const Variant* only = nullptr;
    int fitting = 0;
    for (const Variant& variant : operation.variants) {
        if (!variant.accepts(encoding)) continue;
        if (++fitting == 1) only = &variant;
    }
    if (model && operation.selects_model()) {
        if (model->empty()) return invalid_request(operation, "the query parameter model is empty");
        Result<const Variant*> named = variant_of(operation, *model);
        if (named && !(*named)->accepts(encoding)) return not_taken(operation, name);
        return named;
    }
    if (only == nullptr) return not_taken(operation, name);
    if (fitting > 1) {
        return invalid_request(operation,
                               "the query parameter model is missing, but several models accept " +
                                   std::string(name) + ": " + models(operation));
    }
    return only;
}

Result<const Variant*> choose_variant(const Operation& operation,
                                      std::optional<std::string_view> model,
                                      FunctionRef<bool(std::string_view field)> is_given) {
    if (model && !operation.selects_model()) {
        return invalid_request(
            operation, "does not accept a model selector; " + quoted_text(*model) + " was given");
    }
    if (model) return variant_of(operation, *model);
    const auto chosen = std::ranges::find_if(operation.variants, [&](const Variant& variant) {
        return std::ranges::any_of(variant.chosen_by, is_given);
    });
    return chosen != operation.variants.end() ? &*chosen : &operation.variants.front();
}

}  // namespace polymux::contract
