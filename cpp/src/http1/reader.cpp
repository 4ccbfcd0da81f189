#include "http1/reader.hpp"

namespace polymux::http1::detail {

namespace {

Reader& reader_of(llhttp_t* state) noexcept {
    return *static_cast<Reader*>(state->data);
}

template <std::string_view Seen::* member>
int store(llhttp_t* state, const char* at, std::size_t size) {
    reader_of(state).of_callbacks().*member = {at, size};
    return 0;
}

int end_head(llhttp_t* state) {
    Reader& reader = reader_of(state);
    Seen& seen = reader.of_callbacks();
    seen.head_complete = true;
    seen.is_chunked = (state->flags & F_CHUNKED) != 0;
    seen.has_length = (state->flags & F_CONTENT_LENGTH) != 0;
    seen.has_transfer_encoding = (state->flags & F_TRANSFER_ENCODING) != 0;
    seen.content_length_bytes = state->content_length;
    seen.minor_version = state->http_minor;
    seen.status = state->status_code;
    state->upgrade = 0;  // Offers of other protocols are ignored (RFC 9110, section 7.8).
    return reader.skips_body() ? 1 : 0;
}

int end_chunk_line(llhttp_t* state) {
    reader_of(state).of_callbacks().chunk_bytes = state->content_length;
    return 0;
}

int end_message(llhttp_t* state) {
    reader_of(state).of_callbacks().complete = true;
    return 0;
}

llhttp_settings_t make_settings() noexcept {
    llhttp_settings_t settings = {};
    settings.on_method = store<&Seen::method>;
    settings.on_url = store<&Seen::target>;
    settings.on_header_field = store<&Seen::name>;
    settings.on_header_value = store<&Seen::value>;
    settings.on_body = store<&Seen::body>;
    settings.on_headers_complete = end_head;
    settings.on_chunk_header = end_chunk_line;
    settings.on_message_complete = end_message;
    return settings;
}

const llhttp_settings_t settings = make_settings();

}  // namespace

Reader::Reader(MessageKind kind) {
    llhttp_init(&state_, kind == MessageKind::request ? HTTP_REQUEST : HTTP_RESPONSE, &settings);
    state_.data = this;
}

void Reader::start_message() {
    llhttp_reset(&state_);
    seen_ = {};
    skips_body_ = false;
}

bool Reader::feed(std::string_view bytes) {
    seen_.name = seen_.value = seen_.body = {};
    return llhttp_execute(&state_, bytes.data(), bytes.size()) == HPE_OK;
}

bool Reader::finish() {
    return llhttp_finish(&state_) == HPE_OK;
}

}  // namespace polymux::http1::detail
