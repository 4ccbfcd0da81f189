#include "transport/descriptors.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>

#include "transport/process.hpp"

namespace polymux::transport {

namespace {

/// Indexed by descriptor number, in blocks that are created on demand and never freed. A fork may
/// happen between any two instructions of another thread, so there is no lock, and nothing is ever
/// moved.
constexpr std::size_t block_size = 1024;
constexpr std::size_t block_count = 1024;
using Block = std::array<std::atomic<std::uint64_t>, block_size>;

std::array<std::atomic<Block*>, block_count> blocks;

/// The process in the upper half, the inode in the lower half. libcurl closes a socket that never
/// connected without a callback, and its number may then belong to something else. 0 means unused.
std::uint64_t mark_of(int descriptor) noexcept {
    constexpr std::uint64_t lower = 0xffffffffU;
    struct stat state{};
    if (::fstat(descriptor, &state) != 0) return 0;
    return ((std::uint64_t{process_generation()} + 1) << 32U) | (state.st_ino & lower);
}

/// Returns null if there is no entry, or if out of memory.
std::atomic<std::uint64_t>* place_of(int descriptor, bool make) noexcept {
    const auto number = static_cast<std::size_t>(descriptor);
    if (descriptor < 0 || number >= block_size * block_count) return nullptr;
    std::atomic<Block*>& place = blocks[number / block_size];
    Block* block = place.load(std::memory_order_acquire);
    if (block == nullptr && make) {
        std::unique_ptr<Block> made(new (std::nothrow) Block{});
        if (made && place.compare_exchange_strong(block, made.get())) block = made.release();
    }
    return block == nullptr ? nullptr : &(*block)[number % block_size];
}

}  // namespace

void register_descriptor(int descriptor) noexcept {
    if (auto* const place = place_of(descriptor, true)) place->store(mark_of(descriptor));
}

void unregister_descriptor(int descriptor) noexcept {
    if (auto* const place = place_of(descriptor, false)) place->store(0);
}

void close_inherited() noexcept {
    static std::atomic<unsigned> closed_for = 0;  // The initial process inherits nothing.
    const unsigned process = process_generation();
    if (closed_for.exchange(process) == process) return;
    for (std::size_t i = 0; i < block_size * block_count; ++i) {
        if (blocks[i / block_size].load(std::memory_order_acquire) == nullptr) {
            i += block_size - 1;
            continue;
        }
        const int descriptor = static_cast<int>(i);
        auto* const place = place_of(descriptor, false);
        std::uint64_t mark = place->load();
        if (mark == 0 || (mark >> 32U) == std::uint64_t{process} + 1) continue;
        // If another thread of this process has reused the number, it is no longer the parent's.
        if (!place->compare_exchange_strong(mark, 0)) continue;
        constexpr std::uint64_t lower = 0xffffffffU;
        if (((mark_of(descriptor) ^ mark) & lower) == 0) ::close(descriptor);
    }
}

}  // namespace polymux::transport
