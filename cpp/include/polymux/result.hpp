// How the core reports failure: as a value, without exceptions or printed text.
//
//     Result<MediaInfo> info = probe(source, limits);
//     if (!info) return info.error();
//     use(info->duration_s);
//
// Or in one expression:
//
//     const std::string title = probe(source, limits).map(title_of).value_or("untitled");
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace polymux {

/// Category of a failure. Bindings map each category to one exception class; C++ callers switch on
/// it.
enum class ErrorCode : std::uint8_t {
    invalid_argument,      ///< An option or argument is out of its documented range.
    unsupported_encoding,  ///< The Content-Type of a request's body is not supported.
    input_not_found,       ///< The input path does not exist.
    input_unreadable,      ///< The input is a folder, pipe or device, or cannot be read.
    input_changed,         ///< The input changed while it was sent.
    unsupported_media,     ///< The content is not one of the accepted containers or codecs.
    undecodable,           ///< An accepted container that is damaged or has nothing decodable.
    no_audio,              ///< The media has no audio stream, or not the requested one.
    encrypted,             ///< The media is protected by DRM or encryption.
    limit_exceeded,        ///< A limit of `Limits` was exceeded; the message names it.
    output_exists,         ///< The destination exists and overwriting was not allowed.
    output_refused,      ///< The destination is a symlink, a folder, a device, or the input itself.
    output_failed,       ///< Writing failed: disk full, no permission, I/O error.
    cancelled,           ///< The caller set the cancel token.
    callback_failed,     ///< A source, sink or progress callback of the caller failed.
    encoder_failed,      ///< No encoder is available, or it rejected the settings or failed.
    url_refused,         ///< A URL that must not be fetched: its format, scheme, port, or address.
    connect_failed,      ///< No connection: name resolution, address, or proxy failed.
    tls_failed,          ///< The server's certificate is invalid, or the TLS handshake failed.
    connection_lost,     ///< The connection was closed before the response was complete.
    timed_out,           ///< A timeout expired; `stage` is its name.
    answer_too_large,    ///< A response exceeded a size limit.
    undecodable_answer,  ///< The response does not follow the polymux API, or is not HTTP.
    out_of_memory,       ///< An allocation failed.
    internal,            ///< A defect of polymux.
};

/// Stable lower-case name, e.g. "no_audio".
[[nodiscard]] std::string_view to_string(ErrorCode code) noexcept;

/// One failure, complete enough to print to a person and to log for a machine.
struct Error {
    ErrorCode code = ErrorCode::internal;
    std::string message;          ///< The problem and what to do, in one or two sentences.
    std::string input_name = {};  ///< The input's display name; empty if no input is concerned.
    std::optional<double> position_s = {};  ///< Position in the media, in seconds.
    std::optional<int> ffmpeg_code = {};    ///< FFmpeg's AVERROR value.
    std::string ffmpeg_text = {};           ///< FFmpeg's text for it.
    std::optional<int> os_errno = {};       ///< errno of the failed system call.
    /// Stage of a network exchange: "resolve", "connect", "proxy", "tls", "send" or "receive". If a
    /// timeout expired, the name of that timeout. A literal.
    std::string_view stage = {};
};

/// A value or an Error. Test it before use: `operator*`, `operator->` and `error` assert in debug
/// builds that there is one.
template <typename T>
class [[nodiscard]] Result {
public:
    Result(T value)
        : state_(std::in_place_index<0>, std::move(value)) {
    }  // NOLINT(google-explicit-constructor)
    Result(Error error)
        : state_(std::in_place_index<1>, std::move(error)) {
    }  // NOLINT(google-explicit-constructor)

    [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    T& operator*() & noexcept { return *value(); }
    const T& operator*() const& noexcept { return *value(); }
    T&& operator*() && noexcept { return std::move(*value()); }
    T* operator->() noexcept { return value(); }
    const T* operator->() const noexcept { return value(); }

    Error& error() noexcept {
        assert(!has_value());
        return *std::get_if<1>(&state_);
    }
    const Error& error() const noexcept {
        assert(!has_value());
        return *std::get_if<1>(&state_);
    }

    /// The value, or `fallback` after a failure.
    template <typename U>
    [[nodiscard]] T value_or(U&& fallback) const& {
        return has_value() ? **this : static_cast<T>(std::forward<U>(fallback));
    }
    template <typename U>
    [[nodiscard]] T value_or(U&& fallback) && {
        return has_value() ? *std::move(*this) : static_cast<T>(std::forward<U>(fallback));
    }

    /// The Result of `next(value)`, or this failure.
    template <typename Next>
    [[nodiscard]] auto and_then(Next&& next) && -> std::invoke_result_t<Next, T&&> {
        if (!has_value()) return std::move(error());
        return std::forward<Next>(next)(*std::move(*this));
    }
    template <typename Next>
    [[nodiscard]] auto and_then(Next&& next) const& -> std::invoke_result_t<Next, const T&> {
        if (!has_value()) return error();
        return std::forward<Next>(next)(**this);
    }

    /// A Result with `convert(value)`, or this failure.
    template <typename Convert>
    [[nodiscard]] auto map(Convert&& convert) && -> Result<std::invoke_result_t<Convert, T&&>> {
        if (!has_value()) return std::move(error());
        return std::forward<Convert>(convert)(*std::move(*this));
    }
    template <typename Convert>
    [[nodiscard]] auto map(
        Convert&& convert) const& -> Result<std::invoke_result_t<Convert, const T&>> {
        if (!has_value()) return error();
        return std::forward<Convert>(convert)(**this);
    }

private:
    T* value() noexcept {
        assert(has_value());
        return std::get_if<0>(&state_);
    }
    const T* value() const noexcept {
        assert(has_value());
        return std::get_if<0>(&state_);
    }

    std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

    [[nodiscard]] bool has_value() const noexcept { return !error_.has_value(); }
    explicit operator bool() const noexcept { return has_value(); }
    Error& error() noexcept {
        assert(!has_value());
        return *error_;
    }
    const Error& error() const noexcept {
        assert(!has_value());
        return *error_;
    }

    /// The Result of `next()`, or this failure.
    template <typename Next>
    [[nodiscard]] auto and_then(Next&& next) const -> std::invoke_result_t<Next> {
        if (!has_value()) return error();
        return std::forward<Next>(next)();
    }

private:
    std::optional<Error> error_;
};

}  // namespace polymux
