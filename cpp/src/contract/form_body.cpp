#include "polymux/contract/form_body.hpp"

#include "contract/utf8.hpp"

namespace polymux::contract {

namespace {

class FormValue final : public ValueSource {
public:
    explicit FormValue(const FormPart& part) : part_(part) {}

    ValueType type() const override { return part_.is_file ? type_file : type_string; }
    bool is_form_text() const override { return !part_.is_file; }
    std::size_t text_length(std::size_t limit) const override {
        return count_characters(part_.text, limit);
    }
    std::string_view text_head(std::size_t code_points) const override {
        return first_characters(part_.text, code_points);
    }

private:
    const FormPart& part_;
};

}  // namespace

void FormBody::members(Member visit) const {
    for (const FormPart& part : parts_) {
        if (!visit(part.name, FormValue(part))) return;
    }
}

}  // namespace polymux::contract
