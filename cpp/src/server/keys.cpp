#include "polymux/server/keys.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace polymux::server {

bool Key::allows(std::string_view scope) const noexcept {
    return !scopes || std::find(scopes->begin(), scopes->end(), scope) != scopes->end();
}

KeyTable::KeyTable(std::string path, std::optional<FileStamp> stamp, std::vector<Key> keys)
    : path_(std::move(path)), stamp_(stamp), keys_(std::move(keys)) {}

std::optional<std::size_t> KeyTable::find(std::string_view text, double now_s) const noexcept {
    std::array<std::uint8_t, 32> digest{};
    if (EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1)
        return std::nullopt;  // No memory.
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
        if (CRYPTO_memcmp(digest.data(), keys_[i].sha256.data(), digest.size()) == 0) found = i;
    }
    if (found && keys_[*found].expires_at_s <= now_s) return std::nullopt;
    return found;
}

bool KeyTable::is_current() const noexcept {
    struct stat found{};
    if (::stat(path_.c_str(), &found) != 0) return !stamp_ && errno == ENOENT;
    const FileStamp now{
        .modified_ns = std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec,
        .size_bytes = found.st_size,
        .inode = found.st_ino,
        .mode = found.st_mode};
    return stamp_ == now;
}

}  // namespace polymux::server
