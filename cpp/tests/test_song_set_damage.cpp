#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "song_set_support.hpp"

using namespace polymux;
using namespace polymux::song;
using namespace polymux::testing;

namespace {

void flip_byte(const std::string& path, std::size_t at) {
    // Index files are replaced, never modified, so a mapped file keeps its content.
    std::string content = read_file(path);
    REQUIRE(at < content.size());
    content[at] = static_cast<char>(content[at] ^ 1);
    REQUIRE(::unlink(path.c_str()) == 0);
    write_file(path, content);
}

}  // namespace

TEST_CASE("missing, truncated or foreign files are named, and the others are used") {
    const TemporaryFolder folder;
    {
        const auto set = opened(folder.path());
        add(*set, 1, 1, 20'000);
        REQUIRE(set->publish(1));
        add(*set, 2, 2);
        REQUIRE(set->publish(2));
        CHECK(files_in(*set->snapshot()) == 2);
    }
    const std::string path = first_segment(folder);
    const std::string content = read_file(path);
    const auto check_damaged = [&] {
        const auto set = opened(folder.path());
        const auto snapshot = set->snapshot();
        REQUIRE(snapshot->damaged.size() == 1);
        CHECK(folder.file(snapshot->damaged[0].name) == path);
        CHECK_FALSE(snapshot->damaged[0].reason.empty());
        CHECK(snapshot->covered_sequence == 0);
        check_songs(*set, {2});
    };
    REQUIRE(::unlink(path.c_str()) == 0);
    check_damaged();
    for (const std::size_t size : {std::size_t{0}, std::size_t{100}, content.size() - 1}) {
        write_file(path, content.substr(0, size));
        check_damaged();
    }
    write_file(path, std::string(content.size(), 'x'));
    check_damaged();
    // A valid segment, but not the expected one.
    const auto bytes = build_segment(parameters, {}, 1);
    write_file(path, as_text(*bytes));
    check_damaged();
    write_file(path, content);
    CHECK(opened(folder.path())->snapshot()->songs() == Songs{1, 2});
}

TEST_CASE("a damaged manifest leaves an empty set, or the data of a running one") {
    const TemporaryFolder folder;
    const auto running = opened(folder.path());
    add(*running, 1, 1);
    REQUIRE(running->publish(1));
    const std::string content = read_file(folder.file("manifest"));
    for (std::size_t at = 0; at < content.size(); ++at) {
        flip_byte(folder.file("manifest"), at);
        const auto set = opened(folder.path());
        REQUIRE(set->snapshot()->damaged.size() == 1);
        CHECK(set->snapshot()->damaged[0].name == "manifest");
        CHECK(set->snapshot()->covered_sequence == 0);
        check_songs(*set, {});
        flip_byte(folder.file("manifest"), at);
    }
    for (std::size_t size = 0; size < content.size(); ++size) {
        write_file(folder.file("manifest"), content.substr(0, size));
        CHECK(opened(folder.path())->snapshot()->damaged.size() == 1);
    }
    CHECK(*running->refresh());
    CHECK(running->snapshot()->covered_sequence == 0);
    check_songs(*running, {1});
    CHECK_FALSE(*running->refresh());
    REQUIRE(::unlink(folder.file("manifest").c_str()) == 0);
    CHECK(*running->refresh());
    check_songs(*running, {1});
    CHECK(opened(folder.path())->snapshot()->damaged.empty());
}

TEST_CASE("an index with other parameters is skipped, and replaced") {
    const TemporaryFolder folder;
    const auto set = opened(folder.path());
    add(*set, 1, 1);
    REQUIRE(set->publish(1));
    Parameters other = parameters;
    other.pair_fan += 1;
    const auto changed = SongSet::open(folder.path(), other);
    REQUIRE(changed.has_value());
    CHECK((*changed)->snapshot()->parts.empty());
    CHECK((*changed)->snapshot()->damaged.size() == 1);
    (*changed)->clear();
    const Track track = track_of(2);
    REQUIRE((*changed)->add({&track, 1}, 1));
    REQUIRE((*changed)->publish(1));
    CHECK((*changed)->snapshot()->covered_sequence == 1);
    CHECK(folder.entries().size() == 2);
    // The old set continues with its mapped files.
    CHECK(*set->refresh());
    check_songs(*set, {1});
}

TEST_CASE("damage inside of a file is found by verify, and by the merge that would copy it") {
    const TemporaryFolder folder;
    {
        const auto set = opened(folder.path());
        add(*set, 1, 1);
        REQUIRE(set->publish(1));
    }
    const std::string path = first_segment(folder);
    flip_byte(path, std::filesystem::file_size(path) - 5);
    const auto set = opened(folder.path());
    CHECK(set->snapshot()->damaged.empty());
    const auto damaged = set->verify();
    REQUIRE(damaged.has_value());
    REQUIRE(damaged->size() == 1);
    CHECK(folder.file((*damaged)[0].name) == path);
    CHECK(set->snapshot()->covered_sequence == 0);
    check_songs(*set, {});

    const auto writer = opened(folder.path());
    add(*writer, 2, 2);
    REQUIRE(writer->publish(2));
    CHECK(writer->snapshot()->damaged.size() == 1);
    CHECK(writer->snapshot()->covered_sequence == 0);
    check_songs(*writer, {2});
    CHECK(opened(folder.path())->snapshot()->covered_sequence == 0);

    // As documented in the header: another set rebuilds it.
    const auto anew = opened(folder.path());
    anew->clear();
    CHECK_FALSE(*anew->refresh());
    check_songs(*anew, {});
    add(*anew, 1, 1);
    add(*anew, 2, 2);
    REQUIRE(anew->publish(2));
    CHECK(anew->verify()->empty());
    CHECK(*writer->refresh());
    CHECK(writer->snapshot()->damaged.empty());
    CHECK(writer->snapshot()->covered_sequence == 2);
    check_songs(*writer, {1, 2});
}

TEST_CASE("a cleared set loads what another has repaired, but no damage") {
    const TemporaryFolder folder;
    const auto writer = opened(folder.path());
    add(*writer, 1, 1);
    REQUIRE(writer->publish(1));
    const std::string path = first_segment(folder);
    const std::string whole = read_file(path);
    flip_byte(path, 10);
    const auto reader = opened(folder.path());
    REQUIRE(reader->snapshot()->damaged.size() == 1);
    reader->clear();
    add(*reader, 1, 1);
    add(*reader, 2, 2);
    CHECK_FALSE(*reader->refresh());
    // Another manifest, and still the damaged file.
    add(*writer, 2, 2, 100);
    const auto manifest = load_manifest(folder.path(), parameters);
    REQUIRE(manifest.has_value());
    REQUIRE(replace_manifest(folder.path(), manifest->manifest, parameters));
    CHECK_FALSE(*reader->refresh());
    check_songs(*reader, {1, 2});
    write_file(folder.file("manifest"), "damaged too");
    CHECK_FALSE(*reader->refresh());
    check_songs(*reader, {1, 2});
    // Repaired up to the first change: the second stays in memory.
    write_file(path, whole);
    REQUIRE(replace_manifest(folder.path(), manifest->manifest, parameters));
    CHECK(*reader->refresh());
    CHECK(reader->snapshot()->damaged.empty());
    CHECK(reader->snapshot()->covered_sequence == 1);
    CHECK(files_in(*reader->snapshot()) == 1);
    check_songs(*reader, {1, 2});
    // It is a normal set again.
    add(*reader, 3, 3);
    REQUIRE(reader->publish(3));
    check_songs(*opened(folder.path()), {1, 2, 3});
}

TEST_CASE("a lack of file descriptors is not damage") {
    const TemporaryFolder folder;
    const auto set = opened(folder.path());
    add(*set, 1, 1, 20'000);
    REQUIRE(set->publish(1));
    const auto reader = opened(folder.path());
    add(*set, 2, 2, 300);
    REQUIRE(set->publish(2));
    const int status = run_in_child([&folder, &reader] {
        const int lowest_free = ::dup(0);
        // That many, and one to read the manifest.
        rlimit limit{};
        ::getrlimit(RLIMIT_NOFILE, &limit);
        const auto allow = [&limit](int files) {
            limit.rlim_cur = static_cast<rlim_t>(files);
            return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
        };
        ::close(lowest_free);
        if (!allow(lowest_free)) return 1;
        const auto refused = SongSet::open(folder.path(), parameters);
        if (refused || refused.error().code != ErrorCode::input_unreadable) return 2;
        const auto refreshed = reader->refresh();
        if (refreshed || refreshed.error().os_errno != EMFILE) return 3;
        if (!reader->snapshot()->damaged.empty()) return 4;
        if (reader->snapshot()->songs() != Songs{1}) return 5;
        if (reader->verify()) return 6;
        if (!reader->snapshot()->damaged.empty()) return 7;
        if (!allow(lowest_free + 20)) return 8;
        if (!reader->refresh() || reader->snapshot()->songs() != Songs{1, 2}) return 9;
        const auto damaged = reader->verify();
        return damaged && damaged->empty() ? 0 : 10;
    });
    CHECK(status == 0);
}

TEST_CASE("only what the manifest still names can be damaged") {
    const TemporaryFolder folder;
    const auto set = opened(folder.path());
    add(*set, 1, 1, 300);
    REQUIRE(set->publish(1));
    const auto reader = opened(folder.path());
    // The reader has not refreshed since: its file was merged into another, and deleted.
    add(*set, 2, 2, 300);
    REQUIRE(set->publish(2));
    REQUIRE(folder.entries().size() == 2);
    const auto nothing = reader->verify();
    REQUIRE(nothing.has_value());
    CHECK(nothing->empty());
    CHECK(reader->snapshot()->covered_sequence == 1);
    CHECK(found_by(*reader->snapshot(), 1, 300) == Songs{1});
    // The same is damage if the manifest names the file.
    REQUIRE(*reader->refresh());
    REQUIRE(::unlink(first_segment(folder).c_str()) == 0);
    CHECK(reader->verify()->size() == 1);
}

TEST_CASE("files are complete while others are published") {
    const TemporaryFolder folder;
    const auto set = opened(folder.path());
    add(*set, 1, 1, 300);
    REQUIRE(set->publish(1));
    const auto reader = opened(folder.path());
    std::atomic<bool> done = false;
    std::atomic<int> wrong = 0;
    {
        const std::jthread verifying([&] {
            do {
                const auto damaged = reader->verify();
                if (!damaged || !damaged->empty() || !reader->refresh()) ++wrong;
            } while (!done);
        });
        for (std::int64_t song = 2; song <= 60; ++song) {
            add(*set, song, song, 300);
            REQUIRE(set->publish(song));
        }
        done = true;
    }
    CHECK(wrong == 0);
    REQUIRE(reader->refresh());
    CHECK(reader->snapshot()->songs().size() == 60);
}

TEST_CASE("the next publish deletes leftover files, and nothing else") {
    const TemporaryFolder folder;
    const auto set = opened(folder.path());
    const std::vector<std::string> strays = {"000000000099.segment", "000000000100.segment.part",
                                             "manifest.part"};
    const std::vector<std::string> others = {"7.segment", "library.sqlite", "notes.part"};
    for (const auto& names : {strays, others}) {
        for (const std::string& name : names) write_file(folder.file(name), "half");
    }
    check_songs(*opened(folder.path()), {});
    add(*set, 1, 1);
    REQUIRE(set->publish(1));
    const std::vector<std::string> expected = {"000000000100.segment", "7.segment",
                                               "library.sqlite", "manifest", "notes.part"};
    CHECK(folder.entries() == expected);
    check_songs(*opened(folder.path()), {1});
}

TEST_CASE("a full disk leaves the index unchanged") {
    const TemporaryFolder folder;
    const auto set = opened(folder.path());
    add(*set, 1, 1);
    REQUIRE(set->publish(1));
    const std::vector<std::string> before = folder.entries();
    const int status = run_in_child([&folder] {
        const auto in_child = SongSet::open(folder.path(), parameters);
        const Track track = track_of(2);
        if (!in_child || !(*in_child)->add({&track, 1}, 2)) return 1;
        ::signal(SIGXFSZ, SIG_IGN);
        for (const rlim_t max_bytes : {0U, 100U, 5'000U}) {
            const rlimit limit{.rlim_cur = max_bytes, .rlim_max = RLIM_INFINITY};
            if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
            const auto published = (*in_child)->publish(2);
            if (published || published.error().code != ErrorCode::output_failed) return 3;
            if ((*in_child)->snapshot()->songs() != Songs{1, 2}) return 4;
        }
        const rlimit none{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
        if (::setrlimit(RLIMIT_FSIZE, &none) != 0 || folder.entries().size() != 2) return 5;
        return (*in_child)->publish(2) ? 0 : 6;
    });
    CHECK(status == 0);
    CHECK(before.size() == 2);
    CHECK(*set->refresh());
    check_songs(*set, {1, 2});
}

TEST_CASE("a kill at any moment leaves the index before or after a publish") {
    const TemporaryFolder folder;
    std::mt19937 random(1);
    std::int64_t last = 0;
    for (int round = 0; round < 20; ++round) {
        int ends[2];
        REQUIRE(::pipe(ends) == 0);
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            const auto set = SongSet::open(folder.path(), parameters);
            std::int64_t song = set ? (*set)->snapshot()->covered_sequence : 0;
            for (bool fine = set.has_value(); fine;) {
                const Track track = track_of(++song, 300);
                fine = (*set)->add({&track, 1}, song) && (*set)->publish(song) &&
                       ::write(ends[1], &song, sizeof song) == sizeof song;
            }
            ::_exit(1);
        }
        ::close(ends[1]);
        std::int64_t published = 0;
        for (auto left = random() % 4 + 1; left > 0; --left) {
            REQUIRE(::read(ends[0], &published, sizeof published) == sizeof published);
        }
        // A little into the next one.
        for (auto turns = random() % 2'000; turns > 0; --turns) std::this_thread::yield();
        REQUIRE(::kill(child, SIGKILL) == 0);
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        REQUIRE(WIFSIGNALED(status));
        ::close(ends[0]);

        const auto set = opened(folder.path());
        const auto snapshot = set->snapshot();
        CHECK(snapshot->damaged.empty());
        CHECK(set->verify()->empty());
        CHECK(published > last);
        last = snapshot->covered_sequence;
        CHECK(last >= published);
        Songs songs(static_cast<std::size_t>(last));
        for (std::size_t index = 0; index < songs.size(); ++index) {
            songs[index] = static_cast<std::int64_t>(index) + 1;
        }
        CHECK(snapshot->songs() == songs);
    }
}
