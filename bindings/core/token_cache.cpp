#include "token_cache.hpp"

#include <array>
#include <cstdint>
#include <cstring>

namespace polymux::bindings {

namespace {

PyObject* decode(std::string_view utf8) {
    return PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), nullptr);
}

#ifndef Py_GIL_DISABLED

constexpr std::size_t max_bytes = 16;
constexpr unsigned entries_log2 = 12;

/// The bytes of a text of up to 16 bytes: two overlapping words, which identify it together with
/// the size.
struct Key {
    std::uint64_t head = 0;
    std::uint64_t tail = 0;
    std::size_t size = 0;

    bool operator==(const Key&) const = default;
};

template <typename Word>
std::uint64_t load(const char* at) {
    Word word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
}

Key key_of(std::string_view text) {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    if (text.size() >= 8)
        return {load<std::uint64_t>(begin), load<std::uint64_t>(end - 8), text.size()};
    if (text.size() >= 4)
        return {load<std::uint32_t>(begin), load<std::uint32_t>(end - 4), text.size()};
    if (text.size() >= 2)
        return {load<std::uint16_t>(begin), load<std::uint16_t>(end - 2), text.size()};
    return {load<std::uint8_t>(begin), 0, text.size()};
}

std::size_t place_of(const Key& key) {
    // Odd constants with well-distributed bits; the upper half of a product depends on all bits of
    // the factor.
    const std::uint64_t mixed =
        (key.head * 0x9E3779B97F4A7C15U) ^ (key.tail * 0xC2B2AE3D27D4EB4FU) ^ key.size;
    return (mixed * 0xD6E8FEB86659FD93U) >> (64U - entries_log2);
}

struct Entry {
    Key key;
    PyObject* text = nullptr;  // Owned; lives as long as the process unless replaced.
};

std::array<Entry, std::size_t{1} << entries_log2> cache;

#endif

}  // namespace

PyObject* token_to_str(std::string_view utf8) {
#ifndef Py_GIL_DISABLED
    if (!utf8.empty() && utf8.size() <= max_bytes) {
        const Key key = key_of(utf8);
        Entry& entry = cache[place_of(key)];
        if (entry.text != nullptr && entry.key == key) return Py_NewRef(entry.text);
        PyObject* const text = decode(utf8);
        if (text == nullptr) return nullptr;
        PyObject* const replaced = entry.text;
        entry = {.key = key, .text = Py_NewRef(text)};
        Py_XDECREF(replaced);
        return text;
    }
#endif
    return decode(utf8);
}

}  // namespace polymux::bindings
