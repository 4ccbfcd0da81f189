#include "song/manifest.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "regular_file.hpp"
#include "song/crc32c.hpp"
#include "song/segment_file.hpp"
#include "song/segment_layout.hpp"

namespace polymux::song {

namespace {

constexpr std::string_view segment_ending = ".segment";
constexpr std::size_t number_digits = 12;
constexpr std::array<char, 8> manifest_magic = {'p', 'm', 'x', 's', 'e', 't', 's', '\n'};
constexpr std::uint32_t manifest_version = 1;
// A thousand times the size for a large library; a larger file with this name is not a manifest.
constexpr std::uint64_t max_bytes = std::uint64_t{1} << 30U;
constexpr std::int64_t ns_per_s = 1'000'000'000;

struct ManifestHeader {
    std::array<char, 8> magic = manifest_magic;
    std::uint32_t byte_order = byte_order_mark;
    std::uint32_t version = manifest_version;
    std::uint64_t parameter_hash = 0;
    std::uint64_t generation = 0;
    std::int64_t covered_sequence = 0;
    std::uint64_t segments = 0;
};
static_assert(sizeof(ManifestHeader) == 48);

struct SegmentEntry {
    std::uint64_t number = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t removed = 0;
    std::uint32_t checksum = 0;
    std::uint32_t unused = 0;
};
static_assert(sizeof(SegmentEntry) == 32);

Error unusable_manifest(std::string_view reason) {
    return Error{.code = ErrorCode::undecodable,
                 .message = "the manifest of the song index cannot be used: " +
                            std::string(reason) + std::string(rebuild_hint)};
}

template <typename T>
void put(std::vector<std::byte>& bytes, const T& value) {
    const auto added = bytes_of(value);
    bytes.insert(bytes.end(), added.begin(), added.end());
}

/// Reads values from the front of bytes, as long as enough bytes remain.
class Reader {
public:
    explicit Reader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

    template <typename T>
    [[nodiscard]] bool take(T& value) noexcept {
        if (rest_.size() < sizeof value) return false;
        std::memcpy(&value, rest_.data(), sizeof value);
        rest_ = rest_.subspan(sizeof value);
        return true;
    }
    [[nodiscard]] bool take(std::vector<std::int64_t>& values, std::uint64_t count) {
        if (count > rest_.size() / sizeof(std::int64_t)) return false;
        values.resize(count);
        const std::size_t size_bytes = count * sizeof(std::int64_t);
        if (count > 0) std::memcpy(values.data(), rest_.data(), size_bytes);
        rest_ = rest_.subspan(size_bytes);
        return true;
    }
    [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }

private:
    std::span<const std::byte> rest_;
};

std::optional<Error> check_header(const ManifestHeader& header, const Parameters& parameters) {
    if (header.magic != manifest_magic)
        return unusable_manifest("it is not a manifest of a song index");
    if (header.byte_order != byte_order_mark)
        return unusable_manifest("it was made on a machine with another byte order");
    if (header.version != manifest_version)
        return unusable_manifest(other_version(header.version, manifest_version));
    if (header.parameter_hash != parameters.hash()) {
        return unusable_manifest("its songs were fingerprinted with other parameters");
    }
    return {};
}

Result<std::vector<std::byte>> read_all(const RegularFile& file, const std::string& path) {
    std::vector<std::byte> bytes(file.size_bytes);
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t count = ::pread(file.descriptor.get(), bytes.data() + done,
                                      bytes.size() - done, static_cast<off_t>(done));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            return file_refusal(ErrorCode::input_unreadable, path,
                                std::generic_category().message(errno), errno);
        }
        if (count == 0) return unusable_manifest("it is truncated");
        done += static_cast<std::size_t>(count);
    }
    return bytes;
}

}  // namespace

std::string segment_name(std::uint64_t number) {
    std::string digits = std::to_string(number);
    if (digits.size() < number_digits) digits.insert(0, number_digits - digits.size(), '0');
    return digits + std::string(segment_ending);
}

std::optional<std::uint64_t> segment_number(std::string_view name) noexcept {
    if (name.size() < number_digits + segment_ending.size() || !name.ends_with(segment_ending)) {
        return {};
    }
    name.remove_suffix(segment_ending.size());
    std::uint64_t number = 0;
    const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (problem != std::errc() || end != name.data() + name.size()) return {};
    return number;
}

std::optional<FileStamp> stamp_of(const std::string& path) noexcept {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return {};
    return FileStamp{.device = status.st_dev,
                     .inode = status.st_ino,
                     .size_bytes = static_cast<std::uint64_t>(status.st_size),
                     .modified_ns = status.st_mtim.tv_sec * ns_per_s + status.st_mtim.tv_nsec};
}

std::vector<std::byte> encode(const Manifest& manifest, const Parameters& parameters) {
    std::vector<std::byte> bytes;
    put(bytes, ManifestHeader{.parameter_hash = parameters.hash(),
                              .generation = manifest.generation,
                              .covered_sequence = manifest.covered_sequence,
                              .segments = manifest.segments.size()});
    for (const ManifestSegment& segment : manifest.segments) {
        put(bytes, SegmentEntry{.number = segment.number,
                                .size_bytes = segment.size_bytes,
                                .removed = segment.removed.size(),
                                .checksum = segment.checksum});
        for (const std::int64_t song : segment.removed) put(bytes, song);
    }
    put(bytes, crc32c(bytes));
    return bytes;
}

Result<Manifest> decode(std::span<const std::byte> bytes, const Parameters& parameters) {
    std::uint32_t checksum = 0;
    ManifestHeader header;
    if (bytes.size() < sizeof header + sizeof checksum) return unusable_manifest("it is truncated");
    std::memcpy(&header, bytes.data(), sizeof header);
    if (auto refused = check_header(header, parameters)) return *std::move(refused);
    const std::span<const std::byte> before = bytes.first(bytes.size() - sizeof checksum);
    std::memcpy(&checksum, bytes.data() + before.size(), sizeof checksum);
    if (checksum != crc32c(before)) return unusable_manifest("its checksum is wrong");

    Manifest manifest{.generation = header.generation,
                      .covered_sequence = header.covered_sequence,
                      .segments = {}};
    Reader reader(before.subspan(sizeof header));
    for (std::uint64_t index = 0; index < header.segments; ++index) {
        SegmentEntry entry;
        ManifestSegment segment;
        if (!reader.take(entry) || !reader.take(segment.removed, entry.removed)) {
            return unusable_manifest("it is truncated");
        }
        segment.number = entry.number;
        segment.size_bytes = entry.size_bytes;
        segment.checksum = entry.checksum;
        manifest.segments.push_back(std::move(segment));
    }
    if (!reader.at_end()) return unusable_manifest("it is longer than declared");
    return manifest;
}

Result<LoadedManifest> load_manifest(const std::string& folder, const Parameters& parameters) {
    const std::string path = folder + "/" + std::string(manifest_name);
    const auto file = open_regular_file(path);
    if (!file) return file.error();
    if (file->size_bytes > max_bytes) {
        return unusable_manifest("it is too large (got " + std::to_string(file->size_bytes) +
                                 " bytes, allowed " + std::to_string(max_bytes) + ")");
    }
    const auto bytes = read_all(*file, path);
    if (!bytes) return bytes.error();
    auto manifest = decode(*bytes, parameters);
    if (!manifest) return std::move(manifest.error());
    return LoadedManifest{
        .manifest = *std::move(manifest),
        .stamp = {.device = file->device,
                  .inode = file->inode,
                  .size_bytes = file->size_bytes,
                  .modified_ns = file->modified.tv_sec * ns_per_s + file->modified.tv_nsec}};
}

Result<void> replace_manifest(const std::string& folder, const Manifest& manifest,
                              const Parameters& parameters) {
    auto file = AtomicFile::create(folder, std::string(manifest_name));
    if (!file) return std::move(file.error());
    if (auto written = (*file)->append(encode(manifest, parameters)); !written) return written;
    return (*file)->commit();
}

}  // namespace polymux::song
