#include "cores.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <exception>
#include <fstream>
#include <string_view>
#include <thread>
#include <vector>

#include "polymux/pool.hpp"

namespace polymux {

namespace internal {

namespace {

/// quota / period from a file such as cpu.max ("150000 100000", "max 100000").
std::optional<double> version_2_quota(const std::string& folder) {
    std::ifstream file(folder + "/cpu.max");
    double quota = 0;
    double period = 0;
    if (file >> quota >> period && quota > 0 && period > 0) return quota / period;
    return {};
}

std::optional<double> version_1_quota(const std::string& folder) {
    std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
    std::ifstream period_file(folder + "/cpu.cfs_period_us");
    double quota = 0;
    double period = 0;
    if (quota_file >> quota && period_file >> period && quota > 0 && period > 0) {
        return quota / period;
    }
    return {};
}

/// The smallest quota from `mount` + `group` up to `mount`. In a container, the group may have its
/// name on the host and not exist here; the mount point itself is then the container's group.
std::optional<double> tightest_quota(const std::string& mount, std::string group,
                                     std::optional<double> (*quota_of)(const std::string&)) {
    std::optional<double> min_quota;
    for (;;) {
        while (!group.empty() && group.back() == '/') group.pop_back();
        if (const auto quota = quota_of(mount + group))
            min_quota = std::min(min_quota.value_or(*quota), *quota);
        if (group.empty()) return min_quota;
        group.erase(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
    }
}

bool lists_cpu(std::string_view controllers) {
    return std::string(",").append(controllers).append(",").find(",cpu,") != std::string::npos;
}

}  // namespace

std::optional<double> quota_cores(const std::string& root) {
    std::optional<double> min_quota;
    std::ifstream groups(root + "/proc/self/cgroup");
    // Each line is "hierarchy:controllers:group"; version 2 has hierarchy 0 and no controllers.
    for (std::string line; std::getline(groups, line);) {
        const std::size_t first = line.find(':');
        const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string group = line.substr(second + 1);
        const std::string mounts = root + "/sys/fs/cgroup";
        std::optional<double> quota;
        if (controllers.empty()) {
            quota = tightest_quota(mounts, group, version_2_quota);
        } else if (lists_cpu(controllers)) {
            quota = tightest_quota(mounts + "/" + controllers, group, version_1_quota);
        }
        if (quota) min_quota = std::min(min_quota.value_or(*quota), *quota);
    }
    return min_quota;
}

}  // namespace internal

namespace {

int affinity_cores() {
    // The kernel rejects a set smaller than its own, and does not report its own size.
    for (std::size_t sets = 1; sets <= 64; sets *= 2) {
        std::vector<cpu_set_t> allowed(sets);
        const std::size_t bytes = sets * sizeof(cpu_set_t);
        if (::sched_getaffinity(0, bytes, allowed.data()) == 0) {
            return CPU_COUNT_S(bytes, allowed.data());
        }
        if (errno != EINVAL) break;
    }
    return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int available_cores() noexcept {
    try {
        int cores = affinity_cores();
        // Part of a core counts as one; with fewer threads some of the quota would stay unused.
        if (const auto quota = internal::quota_cores("")) {
            cores = static_cast<int>(std::min<double>(cores, std::ceil(*quota)));
        }
        return std::max(cores, 1);
    } catch (const std::exception&) {
        return 1;
    }
}

}  // namespace polymux
