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

/// Names of the models; with an encoding, only those that accept it.
std::string models(const Operation& operation, std::optional<Encoding> encoding = {}) {
    std::string text;
    for (const Variant& variant : operation.variants) {
        if (encoding && !variant.accepts(*encoding)) continue;
        text += (text.empty() ? "" : ", ") + std::string(variant.model);
    }
    return text;
}

/// Each variant accepts at least one of the two encodings.
Error not_taken(const Operation& operation, Encoding encoding) {
    const Encoding other = encoding == Encoding::json ? Encoding::multipart : Encoding::json;
    return {.code = ErrorCode::unsupported_encoding,
            .message = std::string(operation.name) + ": content type not supported (got " +
                       std::string(media_type(encoding)) + ", allowed " +
                       std::string(media_type(other)) + ")"};
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
    const Variant* only = nullptr;
    int fitting = 0;
    for (const Variant& variant : operation.variants) {
        if (!variant.accepts(encoding)) continue;
        if (++fitting == 1) only = &variant;
    }
    if (model && operation.selects_model()) {
        if (model->empty()) {
            return invalid_request(
                operation,
                "the query parameter model is empty. Choose one of: " + models(operation));
        }
        Result<const Variant*> named = variant_of(operation, *model);
        if (named && !(*named)->accepts(encoding)) return not_taken(operation, encoding);
        return named;
    }
    if (only == nullptr) return not_taken(operation, encoding);
    if (fitting > 1) {
        return invalid_request(
            operation, "the query parameter model is required, because several models accept " +
                           std::string(media_type(encoding)) +
                           ". Choose one of: " + models(operation, encoding));
    }
    return only;
}

Result<const Variant*> choose_variant(const Operation& operation,
                                      std::optional<std::string_view> model,
                                      FunctionRef<bool(std::string_view field)> is_given) {
    if (model && !operation.selects_model()) {
        return invalid_request(operation, "no model can be selected for this operation (got " +
                                              quoted_text(*model) + ")");
    }
    if (model) return variant_of(operation, *model);
    const auto chosen = std::ranges::find_if(operation.variants, [&](const Variant& variant) {
        return std::ranges::any_of(variant.chosen_by, is_given);
    });
    return chosen != operation.variants.end() ? &*chosen : &operation.variants.front();
}

}  // namespace polymux::contract
