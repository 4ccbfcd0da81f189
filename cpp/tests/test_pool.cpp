#include <doctest/doctest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cores.hpp"
#include "polymux/pool.hpp"
#include "support.hpp"

using polymux::available_cores;
using polymux::Pool;
using polymux::testing::run_in_child;
using polymux::testing::TemporaryFolder;
using polymux::testing::write_file;

namespace {

constexpr int patience_ms = 20'000;

std::string thread_name() {
    std::array<char, 16> name{};
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    return name.data();
}

/// Writes files of /proc and /sys for a control group.
void describe(const TemporaryFolder& root, const std::string& file, std::string_view content) {
    std::filesystem::create_directories(std::filesystem::path(root.file(file)).parent_path());
    write_file(root.file(file), content);
}

}  // namespace

TEST_SUITE("pool") {
    TEST_CASE("the pool has one thread for each core this process may use") {
        CHECK(available_cores() >= 1);
        CHECK(available_cores() <= static_cast<int>(std::thread::hardware_concurrency()));
        CHECK(Pool::instance().size() == available_cores());
    }

    TEST_CASE("a process bound to one core counts one") {
        CHECK(run_in_child([] {
                  cpu_set_t one;
                  CPU_ZERO(&one);
                  CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
                  if (::sched_setaffinity(0, sizeof one, &one) != 0) return 99;
                  return available_cores();
              }) == 1);
    }

    TEST_CASE("a thousand tasks run, each once, on the pool's own threads only") {
        std::atomic<int> count = 0;
        std::mutex mutex;
        std::set<std::string> names;
        std::set<std::thread::id> threads;
        for (int task = 0; task < 1000; ++task) {
            Pool::instance().submit([&] {
                ++count;
                const std::scoped_lock lock(mutex);
                names.insert(thread_name());
                threads.insert(std::this_thread::get_id());
            });
        }
        REQUIRE(Pool::instance().wait_idle(patience_ms));
        CHECK(count == 1000);
        CHECK(threads.size() <= static_cast<std::size_t>(Pool::instance().size()));
        CHECK(threads.count(std::this_thread::get_id()) == 0);
        for (const std::string& name : names) CHECK(name.starts_with("polymux-"));
        CHECK(names.size() == threads.size());
    }

    TEST_CASE("as many tasks as cores run at the same time") {
        const int size = Pool::instance().size();
        std::latch all_running(size);
        for (int task = 0; task < size; ++task) {
            Pool::instance().submit([&all_running] { all_running.arrive_and_wait(); });
        }
        CHECK(Pool::instance().wait_idle(patience_ms));
    }

    TEST_CASE("a worker that waits for something outside lends its core to another task") {
        Pool& pool = Pool::instance();
        // One task more than there are cores: all of them can meet only if blocked ones do not
        // count.
        std::latch everybody(pool.size() + 1);
        std::atomic<int> met{0};
        for (int index = 0; index <= pool.size(); ++index) {
            pool.submit([&everybody, &met] {
                const Pool::Blocking outside;
                everybody.arrive_and_wait();
                ++met;
            });
        }
        CHECK(pool.wait_idle(patience_ms));
        CHECK(met == pool.size() + 1);
        // On a thread of the program it is allowed and has no effect.
        const Pool::Blocking elsewhere;
    }

    TEST_CASE("when no task is blocked any more, no more tasks run than there are cores") {
        Pool& pool = Pool::instance();
        std::atomic<int> at_work{0};
        std::atomic<int> most{0};
        for (int index = 0; index < 20 * pool.size(); ++index) {
            pool.submit([&at_work, &most] {
                const int now = ++at_work;
                int seen = most.load();
                while (seen < now && !most.compare_exchange_weak(seen, now)) {
                }
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                --at_work;
            });
        }
        CHECK(pool.wait_idle(patience_ms));
        CHECK(most <= pool.size());
    }

    TEST_CASE("tasks start in the order of submission") {
        // At most size() - 1 tasks can be taken without having counted themselves yet.
        const int size = Pool::instance().size();
        std::atomic<int> started = 0;
        std::atomic<int> too_early = 0;
        for (int task = 0; task < 500; ++task) {
            Pool::instance().submit([&started, &too_early, task, size] {
                const int before = started++;
                if (task > before + size) ++too_early;
            });
        }
        REQUIRE(Pool::instance().wait_idle(patience_ms));
        CHECK(started == 500);
        CHECK(too_early == 0);
    }

    TEST_CASE("tasks may submit tasks, and idle means that those have run too") {
        std::atomic<int> count = 0;
        std::function<void(int)> split = [&](int depth) {
            ++count;
            if (depth == 0) return;
            Pool::instance().submit([&split, depth] { split(depth - 1); });
            Pool::instance().submit([&split, depth] { split(depth - 1); });
        };
        Pool::instance().submit([&split] { split(8); });
        REQUIRE(Pool::instance().wait_idle(patience_ms));
        CHECK(count == 511);
    }

    TEST_CASE("many threads may submit at once") {
        std::atomic<int> count = 0;
        {
            std::vector<std::jthread> submitters;
            for (int number = 0; number < 8; ++number) {
                submitters.emplace_back([&count] {
                    for (int task = 0; task < 250; ++task) {
                        Pool::instance().submit([&count] { ++count; });
                    }
                });
            }
        }
        REQUIRE(Pool::instance().wait_idle(patience_ms));
        CHECK(count == 2000);
    }

    TEST_CASE("waiting for idle times out, and an idle pool does not wait") {
        std::latch release(1);
        Pool::instance().submit([&release] { release.wait(); });
        const auto start = std::chrono::steady_clock::now();
        CHECK_FALSE(Pool::instance().wait_idle(30));
        CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(30));
        CHECK_FALSE(Pool::instance().wait_idle(0));
        CHECK_FALSE(Pool::instance().wait_idle(-1));
        release.count_down();
        CHECK(Pool::instance().wait_idle(patience_ms));
        CHECK(Pool::instance().wait_idle(0));
    }

    TEST_CASE("a task's data is destroyed before the pool counts as idle") {
        const auto held = std::make_shared<int>(1);
        for (int task = 0; task < 100; ++task) {
            Pool::instance().submit([held] { static_cast<void>(*held); });
        }
        REQUIRE(Pool::instance().wait_idle(patience_ms));
        CHECK(held.use_count() == 1);
    }

    TEST_CASE("a task that throws or ends its thread does not affect the others") {
        std::atomic<int> count = 0;
        for (int task = 0; task < 20; ++task) {
            Pool::instance().submit([] { throw std::runtime_error("a defect"); });
            Pool::instance().submit([] { ::pthread_exit(nullptr); });
            Pool::instance().submit([&count] { ++count; });
        }
        REQUIRE(Pool::instance().wait_idle(patience_ms));
        CHECK(count == 20);
    }

    TEST_CASE("workers leave signals to the program's threads") {
        std::atomic<bool> blocked = false;
        std::atomic<bool> faults_open = false;
        Pool::instance().submit([&] {
            sigset_t mask;
            ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
            blocked = ::sigismember(&mask, SIGINT) == 1 && ::sigismember(&mask, SIGTERM) == 1 &&
                      ::sigismember(&mask, SIGCHLD) == 1 && ::sigismember(&mask, SIGALRM) == 1;
            faults_open = ::sigismember(&mask, SIGSEGV) == 0 && ::sigismember(&mask, SIGFPE) == 0;
        });
        REQUIRE(Pool::instance().wait_idle(patience_ms));
        CHECK(blocked);
        CHECK(faults_open);
        sigset_t own;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &own);
        CHECK(::sigismember(&own, SIGINT) == 0);
    }

    TEST_CASE("a forked child has a working pool, even when its parent's was busy") {
        std::latch release(1);
        for (int task = 0; task < Pool::instance().size(); ++task) {
            Pool::instance().submit([&release] { release.wait(); });
        }
        std::atomic<int> inherited = 0;
        Pool::instance().submit([&inherited] { ++inherited; });
        const int status = run_in_child([&inherited] {
            if (!Pool::instance().wait_idle(0)) return 1;
            std::atomic<int> count = 0;
            for (int task = 0; task < 100; ++task) Pool::instance().submit([&count] { ++count; });
            if (!Pool::instance().wait_idle(patience_ms)) return 2;
            if (inherited != 0) return 3;
            // And a child of the child.
            const pid_t parent = ::getpid();
            return run_in_child([parent] {
                       std::atomic<int> own = 0;
                       Pool::instance().submit([&own] { own = 1; });
                       const bool idle = Pool::instance().wait_idle(patience_ms);
                       return idle && own == 1 && ::getpid() != parent ? 42 : 4;
                   }) == 42 &&
                           count == 100
                       ? 0
                       : 5;
        });
        CHECK(status == 0);
        release.count_down();
        REQUIRE(Pool::instance().wait_idle(patience_ms));
        CHECK(inherited == 1);
    }

    TEST_CASE("if the system provides no thread, tasks still run") {
        CHECK(run_in_child([] {
                  // A stack larger than the address space makes every new thread fail.
                  pthread_attr_t attributes;
                  if (::pthread_attr_init(&attributes) != 0) return 1;
                  if (::pthread_attr_setstacksize(&attributes, std::size_t{1} << 47U) != 0)
                      return 2;
                  if (::pthread_setattr_default_np(&attributes) != 0) return 3;
                  std::thread::id runner;
                  Pool::instance().submit([&runner] { runner = std::this_thread::get_id(); });
                  if (!Pool::instance().wait_idle(patience_ms)) return 4;
                  return runner == std::this_thread::get_id() ? 0 : 5;
              }) == 0);
    }

    TEST_CASE("a process ends cleanly while the pool still works") {
        // The child returns through exit(), with static destructors, while a worker runs.
        CHECK(run_in_child([]() -> int {
                  std::atomic<bool> running = false;
                  Pool::instance().submit([&running] {
                      running = true;
                      for (;;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                  });
                  while (!running) std::this_thread::yield();
                  std::exit(0);  // NOLINT(concurrency-mt-unsafe): with static destructors.
              }) == 0);
    }
}

TEST_SUITE("cores") {
    using polymux::internal::quota_cores;

    TEST_CASE("without control groups there is no quota") {
        const TemporaryFolder root;
        CHECK_FALSE(quota_cores(root.path()).has_value());
        describe(root, "proc/self/cgroup", "garbage\n0::/\n1:cpu\n::::\n\n");
        CHECK_FALSE(quota_cores(root.path()).has_value());
    }

    TEST_CASE("version 2: the smallest quota of all parents counts") {
        const TemporaryFolder root;
        describe(root, "proc/self/cgroup", "0::/outer/inner\n");
        describe(root, "sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
        CHECK_FALSE(quota_cores(root.path()).has_value());
        describe(root, "sys/fs/cgroup/outer/cpu.max", "250000 100000\n");
        CHECK(quota_cores(root.path()) == 2.5);
        describe(root, "sys/fs/cgroup/outer/inner/cpu.max", "50000 100000\n");
        CHECK(quota_cores(root.path()) == 0.5);
        describe(root, "sys/fs/cgroup/cpu.max", "10000 100000\n");
        CHECK(quota_cores(root.path()) == 0.1);
    }

    TEST_CASE("version 1: quota and period, and a group with its name on the host") {
        const TemporaryFolder root;
        describe(root, "proc/self/cgroup",
                 "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n3:cpuset:/docker/abc\n0::/\n");
        const std::string group = "sys/fs/cgroup/cpu,cpuacct/";
        describe(root, group + "cpu.cfs_quota_us", "-1\n");
        describe(root, group + "cpu.cfs_period_us", "100000\n");
        CHECK_FALSE(quota_cores(root.path()).has_value());
        describe(root, group + "cpu.cfs_quota_us", "150000\n");
        CHECK(quota_cores(root.path()) == 1.5);
        describe(root, group + "docker/abc/cpu.cfs_quota_us", "100000\n");
        describe(root, group + "docker/abc/cpu.cfs_period_us", "100000\n");
        CHECK(quota_cores(root.path()) == 1.0);
    }

    TEST_CASE("an invalid quota file means no quota") {
        const TemporaryFolder root;
        describe(root, "proc/self/cgroup", "0::/\n");
        for (const char* content :
             {"", "max", "100000", "0 100000", "100000 0", "-5 100000", "x y"}) {
            describe(root, "sys/fs/cgroup/cpu.max", content);
            CHECK_FALSE(quota_cores(root.path()).has_value());
        }
    }
}
