#include "request/text_kernels.hpp"

#include <array>
#include <string_view>

#include "processor_features.hpp"

namespace polymux::json {

#if defined(__x86_64__)
extern const TextKernels sse4_kernels;
extern const TextKernels avx2_kernels;
#endif

namespace {

constexpr std::size_t table_size = 256;
using Table = std::array<Spelling, table_size>;

constexpr Spelling spelled(std::string_view text) {
    Spelling spelling = Spelling{text.size()} << spelling_length_shift;
    for (std::size_t index = 0; index < text.size(); ++index) {
        spelling |= Spelling{static_cast<unsigned char>(text[index])} << (8 * index);
    }
    return spelling;
}

constexpr Spelling spelled_byte(unsigned code) {
    switch (code) {
        case '"':
            return spelled("\\\"");
        case '\\':
            return spelled("\\\\");
        case '\b':
            return spelled("\\b");
        case '\f':
            return spelled("\\f");
        case '\n':
            return spelled("\\n");
        case '\r':
            return spelled("\\r");
        case '\t':
            return spelled("\\t");
        default:
            break;
    }
    if (code >= 0x20) return Spelling{1} << spelling_length_shift | code;
    constexpr std::string_view digits = "0123456789abcdef";
    const std::array<char, max_escape_bytes> text = {
        '\\', 'u', '0', '0', digits[code >> 4U], digits[code & 15U]};
    return spelled(std::string_view(text.data(), text.size()));
}

constexpr Table make_table(bool latin1) {
    Table table{};
    for (unsigned code = 0; code < table_size; ++code) {
        table[code] = latin1 && code >= 0x80
                          ? Spelling{2} << spelling_length_shift | (0x80U | (code & 0x3FU)) << 8U |
                                (0xC0U | code >> 6U)
                          : spelled_byte(code);
    }
    return table;
}

constexpr Table utf8_table = make_table(false);
constexpr Table latin1_table = make_table(true);

constexpr std::size_t block = 64;  // Characters between two checks of the remaining room.
constexpr std::size_t block_bytes = block * max_escape_bytes + sizeof(Spelling);

template <const Table& table>
void put_bytes(Buffer& buffer, const std::uint8_t* text, std::size_t count) {
    Out out(buffer, count + block_bytes);
    while (count > 0) {
        const std::size_t now = count < block ? count : block;
        out.more(block_bytes, count);
        for (std::size_t index = 0; index < now; ++index)
            out.at = put_spelling(out.at, table[text[index]]);
        text += now;
        count -= now;
    }
    out.finish();
}

template <typename Unit>
bool put_units(Buffer& buffer, const Unit* text, std::size_t count) {
    Out out(buffer, count + block_bytes);
    while (count > 0) {
        const std::size_t now = count < block ? count : block;
        out.more(block_bytes, count);
        for (std::size_t index = 0; index < now; ++index) {
            char* const next = put_character(out.at, text[index]);
            if (next == nullptr) return false;
            out.at = next;
        }
        text += now;
        count -= now;
    }
    out.finish();
    return true;
}

constexpr TextKernels any_kernels = {
    .utf8 = put_bytes<utf8_table>,
    .latin1 = put_bytes<latin1_table>,
    .ucs2 = put_units<std::uint16_t>,
    .ucs4 = put_units<std::uint32_t>,
};

}  // namespace

const Spelling* const utf8_spellings = utf8_table.data();
const Spelling* const latin1_spellings = latin1_table.data();

char* put_character(char* at, std::uint32_t code) {
    if (code < table_size) {
        return put_spelling(at, latin1_table[code]);
    }
    const auto put = [&at](std::uint32_t byte) { *at++ = static_cast<char>(byte); };
    if (code < 0x800) {
        put(0xC0U | code >> 6U);
    } else if (code < 0x10000) {
        if (code >= 0xD800 && code <= 0xDFFF) return nullptr;
        put(0xE0U | code >> 12U);
        put(0x80U | (code >> 6U & 0x3FU));
    } else if (code < 0x110000) {
        put(0xF0U | code >> 18U);
        put(0x80U | (code >> 12U & 0x3FU));
        put(0x80U | (code >> 6U & 0x3FU));
    } else {
        return nullptr;
    }
    put(0x80U | (code & 0x3FU));
    return at;
}

const TextKernels* kernels_for(Processor processor) {
#if defined(__x86_64__)
    if (processor == Processor::sse4) {
        return internal::has_sse4() ? &sse4_kernels : nullptr;
    }
    if (processor == Processor::avx2) {
        return internal::has_avx2() ? &avx2_kernels : nullptr;
    }
#endif
    return processor == Processor::any ? &any_kernels : nullptr;
}

const TextKernels& best_kernels() {
    static const TextKernels& best = []() -> const TextKernels& {
        for (const Processor processor : {Processor::avx2, Processor::sse4}) {
            if (const TextKernels* const kernels = kernels_for(processor)) return *kernels;
        }
        return any_kernels;
    }();
    return best;
}

}  // namespace polymux::json
