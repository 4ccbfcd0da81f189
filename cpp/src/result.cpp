#include "polymux/result.hpp"

namespace polymux {

std::string_view to_string(ErrorCode code) noexcept {
    switch (code) {
        case ErrorCode::invalid_argument:
            return "invalid_argument";
        case ErrorCode::unsupported_encoding:
            return "unsupported_encoding";
        case ErrorCode::input_not_found:
            return "input_not_found";
        case ErrorCode::input_unreadable:
            return "input_unreadable";
        case ErrorCode::input_changed:
            return "input_changed";
        case ErrorCode::unsupported_media:
            return "unsupported_media";
        case ErrorCode::undecodable:
            return "undecodable";
        case ErrorCode::no_audio:
            return "no_audio";
        case ErrorCode::encrypted:
            return "encrypted";
        case ErrorCode::limit_exceeded:
            return "limit_exceeded";
        case ErrorCode::output_exists:
            return "output_exists";
        case ErrorCode::output_refused:
            return "output_refused";
        case ErrorCode::output_failed:
            return "output_failed";
        case ErrorCode::cancelled:
            return "cancelled";
        case ErrorCode::callback_failed:
            return "callback_failed";
        case ErrorCode::encoder_failed:
            return "encoder_failed";
        case ErrorCode::url_refused:
            return "url_refused";
        case ErrorCode::connect_failed:
            return "connect_failed";
        case ErrorCode::tls_failed:
            return "tls_failed";
        case ErrorCode::connection_lost:
            return "connection_lost";
        case ErrorCode::timed_out:
            return "timed_out";
        case ErrorCode::answer_too_large:
            return "answer_too_large";
        case ErrorCode::undecodable_answer:
            return "undecodable_answer";
        case ErrorCode::out_of_memory:
            return "out_of_memory";
        case ErrorCode::internal:
            return "internal";
    }
    // Reached only by a value outside the enumeration.
    return "internal";
}

}  // namespace polymux
