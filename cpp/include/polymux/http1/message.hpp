// The head of an HTTP/1.1 message: views into received bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace polymux::http1 {

/// A field line. Spaces and tabs around the value are removed.
struct Field {
    std::string_view name;
    std::string_view value;
};

/// A part of a section, in bytes from the section's start.
struct TextRange {
    std::uint32_t begin = 0;
    std::uint32_t size = 0;

    [[nodiscard]] std::string_view of(const char* section) const noexcept {
        return {section + begin, size};
    }
};

struct FieldPosition {
    TextRange name;
    TextRange value;
};

/// The fields of a head or the trailers of a body, in the order of arrival.
class FieldList {
public:
    FieldList() = default;
    FieldList(const char* section, std::span<const FieldPosition> fields) noexcept
        : section_(section), fields_(fields) {}

    [[nodiscard]] std::size_t size() const noexcept { return fields_.size(); }
    [[nodiscard]] bool empty() const noexcept { return fields_.empty(); }
    [[nodiscard]] Field operator[](std::size_t index) const noexcept {
        return {fields_[index].name.of(section_), fields_[index].value.of(section_)};
    }
    /// Value of the first field with this name, in any case.
    [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept;

private:
    const char* section_ = nullptr;
    std::span<const FieldPosition> fields_;
};

/// How the end of a body is found.
enum class BodyFraming : std::uint8_t {
    none,         ///< No body.
    length,       ///< Content-Length.
    chunked,      ///< Transfer-Encoding: chunked.
    until_close,  ///< A response that ends with its connection.
};

/// Form of a request's target (RFC 9112, section 3.2). CONNECT is rejected, so there is no
/// authority-form.
enum class TargetForm : std::uint8_t { origin, absolute, asterisk };

/// A start line and fields. `Parser::head` says how long the views are valid.
struct MessageHead {
    // Requests.
    std::string_view method;
    std::string_view target;  ///< As received.
    TargetForm target_form = TargetForm::origin;
    /// Path and query. For an absolute-form target the part after the authority: empty, or a query
    /// without path, if the path is empty. "*" for an asterisk-form target.
    std::string_view path;
    /// Host and port: the target's if it is absolute (RFC 9112, section 3.2.2), or the Host field.
    /// Empty only in HTTP/1.0.
    std::string_view authority;
    bool expects_continue = false;  ///< The client waits for 100 (Continue) before the body.

    // Responses.
    int status = 0;
    std::string_view reason;

    int minor_version = 1;  ///< 1 or 0, of HTTP/1.1 and HTTP/1.0.
    /// The connection can be used for another message after this one.
    bool keep_alive = true;
    BodyFraming framing = BodyFraming::none;
    std::uint64_t content_length_bytes = 0;  ///< For `BodyFraming::length`.
    FieldList fields;
};

}  // namespace polymux::http1
