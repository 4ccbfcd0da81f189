#include "polymux/http1/parser.hpp"

#include <algorithm>
#include <utility>

#include "http1/bytes.hpp"
#include "http1/head_rules.hpp"
#include "http1/reader.hpp"

namespace polymux::http1 {

namespace {

constexpr std::string_view line_end = "\r\n";
// Memory that an idle connection keeps.
constexpr std::size_t kept_fields = 24;

void empty_fields(std::vector<FieldPosition>& fields) noexcept {
    if (fields.capacity() > kept_fields) std::vector<FieldPosition>().swap(fields);
    fields.clear();
}

TextRange moved(TextRange range, std::size_t by) noexcept {
    return {static_cast<std::uint32_t>(range.begin + by), range.size};
}

}  // namespace

Parser::Parser(MessageKind kind, const Limits& limits)
    : limits_(&limits), kind_(kind), reader_(std::make_unique<detail::Reader>(kind)) {
    begin_message();
}

Parser::Parser(Parser&&) noexcept = default;
Parser& Parser::operator=(Parser&&) noexcept = default;
Parser::~Parser() = default;

void Parser::begin_message() noexcept {
    phase_ = Phase::start;
    skipped_empty_line_ = false;
    facts_ = {};
    extension_bytes_ = 0;
    max_body_bytes_ = limits_->max_body_bytes;
    body_bytes_ = left_bytes_ = 0;
    section_.release();
    tail_.release();
    empty_fields(fields_);
    std::vector<FieldPosition>().swap(trailers_);
    head_ = {};
    reader_->start_message();
}

Event Parser::refuse(Refusal refusal) noexcept {
    refusal_ = refusal;
    phase_ = Phase::refused;
    return Event::refused;
}

Event Parser::stop(Refusal refusal) noexcept {
    return refusal == Refusal::none ? Event::need_input : refuse(refusal);
}

Event Parser::next(std::string_view& input) {
    body_ = {};
    if (phase_ == Phase::ended) begin_message();
    for (Refusal refusal = Refusal::none;;) {
        switch (phase_) {
            case Phase::start:
                if (!section_.read(input,
                                   {limits_->max_start_line_bytes, Refusal::start_line_too_long,
                                    limits_->max_start_line_bytes + line_end.size(),
                                    Refusal::start_line_too_long},
                                   refusal)) {
                    return stop(refusal);
                }
                // Some clients send an empty line after a body (RFC 9112, section 2.2).
                if (kind_ == MessageKind::request && section_.line().empty() &&
                    !std::exchange(skipped_empty_line_, true)) {
                    section_.start();
                    break;
                }
                refusal = read_start_line();
                break;
            case Phase::fields:
                if (!section_.read(
                        input,
                        {limits_->max_field_bytes, Refusal::field_too_long,
                         start_line_bytes_ + limits_->max_fields_bytes, Refusal::fields_too_large},
                        refusal)) {
                    return stop(refusal);
                }
                if (!section_.line().empty()) {
                    refusal = read_field();
                    break;
                }
                refusal = finish_head();
                if (refusal == Refusal::none) return Event::head;
                break;
            case Phase::after_head:
                begin_body();
                break;
            case Phase::chunk_line: {
                const std::size_t room =
                    limits_->max_chunk_extension_bytes - extension_bytes_ + max_chunk_digits;
                if (!tail_.read(input,
                                {room, Refusal::chunk_extensions_too_large, room + line_end.size(),
                                 Refusal::chunk_extensions_too_large},
                                refusal)) {
                    return stop(refusal);
                }
                refusal = read_chunk_line();
                break;
            }
            case Phase::body:
            case Phase::chunk:
                if (input.empty()) return Event::need_input;
                refusal = read_body(input);
                if (refusal == Refusal::none) return Event::body;
                break;
            case Phase::chunk_end:
                if (!read_chunk_end(input, refusal)) return stop(refusal);
                break;
            case Phase::trailers:
                if (!tail_.read(input,
                                {limits_->max_field_bytes, Refusal::field_too_long,
                                 limits_->max_trailers_bytes, Refusal::trailers_too_large},
                                refusal)) {
                    return stop(refusal);
                }
                refusal = read_trailer();
                break;
            case Phase::complete:
                return end_message();
            case Phase::ended:
                return Event::need_input;
            case Phase::closed:
                input = {};
                return Event::need_input;
            case Phase::refused:
                return Event::refused;
        }
        if (refusal != Refusal::none) return refuse(refusal);
    }
}

Event Parser::finish() {
    std::string_view nothing;
    const Event event = next(nothing);
    if (event != Event::need_input) return event;
    if (phase_ == Phase::closed || idle()) return Event::need_input;
    if (phase_ != Phase::body || head_.framing != BodyFraming::until_close) {
        return refuse(Refusal::incomplete);
    }
    return reader_->finish() ? end_message() : refuse(Refusal::ambiguous);
}

Refusal Parser::read_start_line() {
    const std::string_view line = section_.line();
    start_line_bytes_ = section_.size();
    phase_ = Phase::fields;
    const Refusal refusal = kind_ == MessageKind::request ? read_request_line(line, facts_)
                                                          : read_status_line(line, facts_);
    if (refusal != Refusal::none) return refusal;
    const char* const begin = section_.begin();
    const detail::Seen& seen = reader_->seen();
    const bool agrees = reader_->feed(section_.line_with_end()) &&
                        seen.method == facts_.ranges.method.of(begin) &&
                        seen.target == facts_.ranges.target.of(begin);
    return agrees ? Refusal::none : Refusal::ambiguous;
}

Refusal Parser::read_field() {
    if (fields_.size() == limits_->max_fields) return Refusal::too_many_fields;
    const std::string_view line = section_.line();
    FieldPosition position;
    Refusal refusal = read_field_line(line, position);
    if (refusal != Refusal::none) return refusal;
    const Field field = {position.name.of(line.data()), position.value.of(line.data())};
    const std::size_t value_begin = section_.line_begin() + position.value.begin;
    refusal = apply_field(field, value_begin, kind_, facts_);
    if (refusal != Refusal::none) return refusal;
    if (fields_.capacity() == 0) fields_.reserve(kept_fields);
    fields_.push_back({moved(position.name, section_.line_begin()),
                       moved(position.value, section_.line_begin())});
    return second_reader_agrees(section_.line_with_end(), field) ? Refusal::none
                                                                 : Refusal::ambiguous;
}

bool Parser::second_reader_agrees(std::string_view line_with_end, const Field& field) {
    return reader_->feed(line_with_end) && reader_->seen().name == field.name &&
           trim(reader_->seen().value) == field.value;
}

Refusal Parser::finish_head() {
    const bool is_response = kind_ == MessageKind::response;
    if (!is_response && facts_.minor_version == 1 && !facts_.has_host) return Refusal::missing_host;
    const bool is_interim = is_response && facts_.status < 200;
    const bool has_no_body = is_response && (is_interim || to_head_request_ ||
                                             facts_.status == 204 || facts_.status == 304);
    if (facts_.is_chunked && (is_interim || (is_response && facts_.status == 204))) {
        return Refusal::invalid_transfer_encoding;
    }
    if (has_no_body) reader_->skip_body();
    const detail::Seen& seen = reader_->seen();
    if (!reader_->feed(line_end) || !seen.head_complete || seen.is_chunked != facts_.is_chunked ||
        seen.has_transfer_encoding != facts_.is_chunked || seen.has_length != facts_.has_length ||
        (facts_.has_length && !has_no_body &&
         seen.content_length_bytes != facts_.content_length_bytes) ||
        seen.minor_version != facts_.minor_version || seen.status != facts_.status) {
        return Refusal::ambiguous;
    }
    if (has_no_body) {
        head_.framing = BodyFraming::none;
    } else if (facts_.is_chunked) {
        head_.framing = BodyFraming::chunked;
    } else if (facts_.has_length) {
        head_.framing = BodyFraming::length;
        head_.content_length_bytes = facts_.content_length_bytes;
        if (facts_.content_length_bytes > max_body_bytes_) return Refusal::body_too_large;
    } else if (is_response) {
        head_.framing = BodyFraming::until_close;
    }
    head_.target_form = facts_.target_form;
    head_.status = facts_.status;
    head_.minor_version = facts_.minor_version;
    head_.expects_continue =
        facts_.expects_continue && facts_.minor_version == 1 &&
        (head_.framing == BodyFraming::chunked || head_.content_length_bytes > 0);
    head_.keep_alive =
        is_interim || (head_.framing != BodyFraming::until_close && !facts_.says_close &&
                       (facts_.minor_version == 1 || facts_.says_keep_alive));
    point_head_at(section_.begin());
    phase_ = Phase::after_head;
    return Refusal::none;
}

void Parser::point_head_at(const char* begin) noexcept {
    const detail::HeadRanges& ranges = facts_.ranges;
    head_.method = ranges.method.of(begin);
    head_.target = ranges.target.of(begin);
    head_.path = ranges.path.of(begin);
    head_.authority = ranges.authority.of(begin);
    head_.reason = ranges.reason.of(begin);
    head_.fields = {begin, fields_};
}

void Parser::keep_head() {
    section_.keep();
    point_head_at(section_.begin());
}

bool Parser::limit_body(std::uint64_t max_body_bytes) noexcept {
    max_body_bytes_ = max_body_bytes;
    if (head_.framing != BodyFraming::length || head_.content_length_bytes <= max_body_bytes) {
        return true;
    }
    refuse(Refusal::body_too_large);
    return false;
}

void Parser::begin_body() noexcept {
    phase_ = Phase::body;
    switch (head_.framing) {
        case BodyFraming::none:
            phase_ = Phase::complete;
            break;
        case BodyFraming::length:
            left_bytes_ = head_.content_length_bytes;
            if (left_bytes_ == 0) phase_ = Phase::complete;
            break;
        case BodyFraming::until_close:
            left_bytes_ = max_body_bytes_;
            break;
        case BodyFraming::chunked:
            phase_ = Phase::chunk_line;
            break;
    }
}

Refusal Parser::read_body(std::string_view& input) {
    if (left_bytes_ == 0) return Refusal::body_too_large;  // The body ends with the connection.
    const std::string_view piece = input.substr(
        0, static_cast<std::size_t>(std::min<std::uint64_t>(left_bytes_, input.size())));
    if (!reader_->feed(piece) || reader_->seen().body != piece) return Refusal::ambiguous;
    body_ = piece;
    input.remove_prefix(piece.size());
    left_bytes_ -= piece.size();
    if (left_bytes_ == 0 && phase_ == Phase::chunk) phase_ = Phase::chunk_end;
    if (left_bytes_ == 0 && head_.framing == BodyFraming::length) phase_ = Phase::complete;
    return Refusal::none;
}

Refusal Parser::read_chunk_line() {
    ChunkLine chunk;
    const Refusal refusal = http1::read_chunk_line(tail_.line(), chunk);
    if (refusal != Refusal::none) return refusal;
    if (chunk.extension_bytes > limits_->max_chunk_extension_bytes - extension_bytes_) {
        return Refusal::chunk_extensions_too_large;
    }
    extension_bytes_ += chunk.extension_bytes;
    if (chunk.size_bytes > max_body_bytes_ || body_bytes_ > max_body_bytes_ - chunk.size_bytes) {
        return Refusal::body_too_large;
    }
    if (!reader_->feed(tail_.line_with_end()) || reader_->seen().chunk_bytes != chunk.size_bytes) {
        return Refusal::ambiguous;
    }
    body_bytes_ += chunk.size_bytes;
    left_bytes_ = chunk.size_bytes;
    phase_ = left_bytes_ > 0 ? Phase::chunk : Phase::trailers;
    tail_.start();
    return Refusal::none;
}

bool Parser::read_chunk_end(std::string_view& input, Refusal& refusal) {
    while (chunk_end_bytes_ < line_end.size()) {
        if (input.empty()) return false;
        if (input.front() != line_end[chunk_end_bytes_]) {
            refusal = Refusal::invalid_chunk_end;
            return false;
        }
        input.remove_prefix(1);
        ++chunk_end_bytes_;
    }
    chunk_end_bytes_ = 0;
    phase_ = Phase::chunk_line;
    if (!reader_->feed(line_end)) refusal = Refusal::ambiguous;
    return true;
}

Refusal Parser::read_trailer() {
    const std::string_view line = tail_.line();
    if (line.empty()) {
        phase_ = Phase::complete;
        return reader_->feed(line_end) ? Refusal::none : Refusal::ambiguous;
    }
    if (trailers_.size() == limits_->max_trailers) return Refusal::too_many_trailers;
    FieldPosition position;
    const Refusal refusal = read_field_line(line, position);
    if (refusal != Refusal::none) return refusal;
    const Field field = {position.name.of(line.data()), position.value.of(line.data())};
    // Other fields that must not be trailers are harmless: the server ignores trailers.
    if (is_framing(field.name)) return Refusal::invalid_trailer;
    trailers_.push_back(
        {moved(position.name, tail_.line_begin()), moved(position.value, tail_.line_begin())});
    return second_reader_agrees(tail_.line_with_end(), field) ? Refusal::none : Refusal::ambiguous;
}

Event Parser::end_message() noexcept {
    if (!reader_->seen().complete) return refuse(Refusal::ambiguous);
    phase_ = head_.keep_alive ? Phase::ended : Phase::closed;
    return Event::end;
}

std::size_t Parser::memory_bytes() const noexcept {
    return sizeof(*this) + sizeof(detail::Reader) + section_.memory_bytes() + tail_.memory_bytes() +
           (fields_.capacity() + trailers_.capacity()) * sizeof(FieldPosition);
}

}  // namespace polymux::http1
