#include "polymux/http1/refusal.hpp"

namespace polymux::http1 {

std::string_view to_string(Refusal refusal) noexcept {
    switch (refusal) {
        case Refusal::none:
            return "none";
        case Refusal::invalid_start_line:
            return "invalid_start_line";
        case Refusal::start_line_too_long:
            return "start_line_too_long";
        case Refusal::invalid_method:
            return "invalid_method";
        case Refusal::unknown_method:
            return "unknown_method";
        case Refusal::invalid_target:
            return "invalid_target";
        case Refusal::unsupported_version:
            return "unsupported_version";
        case Refusal::unexpected_upgrade:
            return "unexpected_upgrade";
        case Refusal::bare_cr:
            return "bare_cr";
        case Refusal::bare_lf:
            return "bare_lf";
        case Refusal::control_character:
            return "control_character";
        case Refusal::folded_field:
            return "folded_field";
        case Refusal::invalid_field:
            return "invalid_field";
        case Refusal::invalid_field_name:
            return "invalid_field_name";
        case Refusal::field_too_long:
            return "field_too_long";
        case Refusal::too_many_fields:
            return "too_many_fields";
        case Refusal::fields_too_large:
            return "fields_too_large";
        case Refusal::missing_host:
            return "missing_host";
        case Refusal::several_hosts:
            return "several_hosts";
        case Refusal::invalid_host:
            return "invalid_host";
        case Refusal::unsupported_expectation:
            return "unsupported_expectation";
        case Refusal::invalid_content_length:
            return "invalid_content_length";
        case Refusal::several_content_lengths:
            return "several_content_lengths";
        case Refusal::length_and_transfer_encoding:
            return "length_and_transfer_encoding";
        case Refusal::invalid_transfer_encoding:
            return "invalid_transfer_encoding";
        case Refusal::unsupported_transfer_encoding:
            return "unsupported_transfer_encoding";
        case Refusal::body_too_large:
            return "body_too_large";
        case Refusal::invalid_chunk_size:
            return "invalid_chunk_size";
        case Refusal::invalid_chunk_extension:
            return "invalid_chunk_extension";
        case Refusal::chunk_extensions_too_large:
            return "chunk_extensions_too_large";
        case Refusal::invalid_chunk_end:
            return "invalid_chunk_end";
        case Refusal::invalid_trailer:
            return "invalid_trailer";
        case Refusal::too_many_trailers:
            return "too_many_trailers";
        case Refusal::trailers_too_large:
            return "trailers_too_large";
        case Refusal::incomplete:
            return "incomplete";
        case Refusal::ambiguous:
            return "ambiguous";
    }
    return "none";
}

int status_of(Refusal refusal) noexcept {
    switch (refusal) {
        case Refusal::none:
            return 0;
        case Refusal::body_too_large:
            return 413;
        case Refusal::start_line_too_long:
            return 414;
        case Refusal::unsupported_expectation:
            return 417;
        case Refusal::field_too_long:
        case Refusal::too_many_fields:
        case Refusal::fields_too_large:
        case Refusal::too_many_trailers:
        case Refusal::trailers_too_large:
            return 431;
        case Refusal::unknown_method:
        case Refusal::unsupported_transfer_encoding:
            return 501;
        case Refusal::unsupported_version:
            return 505;
        default:
            return 400;
    }
}

}  // namespace polymux::http1
