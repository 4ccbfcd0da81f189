#include "song_index.hpp"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

#include "errors.hpp"
#include "job.hpp"
#include "polymux/song/matcher.hpp"
#include "polymux/song/query.hpp"
#include "polymux/song/song_set.hpp"
#include "python_bytes.hpp"
#include "song.hpp"

namespace polymux::bindings {
namespace {

using namespace py::literals;  // NOLINT(google-build-using-namespace)

/// Song, first frame of the recording, frames, peaks of both windows.
using TrackRow = std::tuple<std::int64_t, std::uint32_t, std::uint32_t, py::bytes, py::bytes>;

std::vector<song::PackedPeak> peaks_of(const py::bytes& bytes) {
    const HeldBuffer held(bytes);
    if (held.bytes().size() % sizeof(song::PackedPeak) != 0) {
        raise({.code = ErrorCode::invalid_argument,
               .message = "invalid peaks: the size must be a multiple of 4 bytes (got " +
                          std::to_string(held.bytes().size()) + " bytes)"});
    }
    std::vector<song::PackedPeak> peaks(held.bytes().size() / sizeof(song::PackedPeak));
    if (!peaks.empty()) {
        std::memcpy(peaks.data(), held.bytes().data(), held.bytes().size());
    }
    return peaks;
}

/// How to treat work if a signal handler raises during it.
enum class OnSignal : std::uint8_t {
    /// Cancel it, and abandon it if it does not end soon, because it only reads.
    leave,
    /// Wait for it, because the lock for its writes is released afterwards.
    finish,
};

/// Runs `work` on a separate thread while this thread waits and handles signals. Calls `between`
/// periodically; its exceptions cancel the work.
template <typename T>
T await_work(std::function<Result<T>(const CancelToken&)> work,
             OnSignal on_signal = OnSignal::leave, const std::function<void()>& between = {}) {
    const Entry entry;
    const auto job = std::make_shared<ResultJob<T>>();
    job->work = [&own = *job, work = std::move(work)] { return work(own.token()); };
    job->start(Job::Place::own_thread);
    try {
        job->await(between);
    } catch (const std::exception&) {
        constexpr std::chrono::milliseconds turn{50};
        while (on_signal == OnSignal::finish && !job->wait_for(turn)) {
        }
        throw;
    }
    return job->get();
}

/// Converts a `Result<void>` for a job, which needs a value.
Result<bool> done(const Result<void>& result) {
    if (!result) {
        return result.error();
    }
    return true;
}

py::dict to_dict(const song::WindowEvidence& evidence) {
    return py::dict("likelihood"_a = evidence.likelihood, "survival"_a = evidence.survival,
                    "peaks"_a = evidence.peaks, "hits"_a = evidence.hits);
}

py::dict to_dict(const song::Candidate& candidate) {
    constexpr const char* changes[] = {"speed", "tempo", "pitch"};
    return py::dict(
        "song_id"_a = candidate.song, "offset_s"_a = candidate.offset_s,
        "tempo"_a = candidate.tempo, "pitch"_a = candidate.pitch,
        "change"_a = changes[static_cast<std::size_t>(candidate.change)],
        "votes"_a = candidate.votes, "strength"_a = candidate.strength,
        "confidence"_a = candidate.confidence, "accepted"_a = candidate.accepted,
        "contrast"_a = py::make_tuple(candidate.contrast.strongest, candidate.contrast.dense),
        "evidence"_a =
            py::make_tuple(to_dict(candidate.evidence[0]), to_dict(candidate.evidence[1])));
}

/// The Python handle. Any thread may use it.
class SongIndex {
public:
    explicit SongIndex(const std::string& folder) {
        const auto set = await_work<std::shared_ptr<song::SongSet>>(
            [folder](const CancelToken&) -> Result<std::shared_ptr<song::SongSet>> {
                auto opened = song::SongSet::open(folder, song_parameters);
                if (!opened) {
                    return opened.error();
                }
                return std::shared_ptr<song::SongSet>(std::move(*opened));
            });
        set_ = set;
    }

    [[nodiscard]] bool refresh() const {
        return await_work<bool>([set = set_](const CancelToken&) { return set->refresh(); });
    }

    void add(const std::vector<TrackRow>& rows, std::int64_t sequence) const {
        const auto tracks = std::make_shared<std::vector<song::Track>>();
        for (const auto& [song, first_frame, frames, first, second] : rows) {
            song::Track track{.song = song, .first_frame = first_frame, .fingerprint = {}};
            track.fingerprint.frames = frames;
            track.fingerprint.peaks[0] = peaks_of(first);
            track.fingerprint.peaks[1] = peaks_of(second);
            tracks->push_back(std::move(track));
        }
        await_work<bool>([set = set_, tracks, sequence](
                             const CancelToken&) { return done(set->add(*tracks, sequence)); },
                         OnSignal::finish);
    }

    void remove(const std::vector<std::int64_t>& songs, std::int64_t sequence) const {
        await_work<bool>([set = set_, songs, sequence](
                             const CancelToken&) { return done(set->remove(songs, sequence)); },
                         OnSignal::finish);
    }

    void publish(std::int64_t covered_sequence) const {
        await_work<bool>([set = set_, covered_sequence](
                             const CancelToken&) { return done(set->publish(covered_sequence)); },
                         OnSignal::finish);
    }

    void reset() const { set_->clear(); }

    [[nodiscard]] py::list verify(const py::object& on_wait) const {
        return damaged_list(await_work<std::vector<song::DamagedPart>>(
            [set = set_](const CancelToken& token) { return set->verify(token); }, OnSignal::leave,
            called(on_wait)));
    }

    [[nodiscard]] py::list damaged() const { return damaged_list(set_->snapshot()->damaged); }
    [[nodiscard]] std::uint64_t generation() const { return set_->snapshot()->generation; }
    [[nodiscard]] std::int64_t covered_sequence() const {
        return set_->snapshot()->covered_sequence;
    }
    [[nodiscard]] std::vector<std::int64_t> songs() const { return set_->snapshot()->songs(); }

    [[nodiscard]] py::dict statistics() const {
        const auto snapshot = set_->snapshot();
        std::size_t bytes = 0;
        std::size_t postings = 0;
        std::size_t files = 0;
        for (const auto& part : snapshot->parts) {
            bytes += part->segment.size_bytes();
            postings += part->segment.posting_count();
            files += part->number != 0 ? 1U : 0U;
        }
        return py::dict("songs"_a = snapshot->songs().size(), "segments"_a = files,
                        "bytes"_a = bytes, "memory_bytes"_a = snapshot->memory_bytes(),
                        "postings"_a = postings);
    }

    [[nodiscard]] py::list candidates(const py::bytes& query,
                                      const std::vector<std::int64_t>& excluded) const {
        py::list list;
        for (const song::Candidate& candidate : find(query, excluded)) {
            list.append(to_dict(candidate));
        }
        return list;
    }

    [[nodiscard]] py::object identify(const py::bytes& query,
                                      const std::vector<std::int64_t>& excluded,
                                      const py::object& on_wait,
                                      std::optional<float> min_confidence) const {
        const std::vector<song::Candidate> found = find(query, excluded, called(on_wait));
        const song::Decision& decision = song_parameters.decision;
        if (found.empty() ||
            !song::is_answer(found.front(), min_confidence.value_or(decision.accepted), decision)) {
            return py::none();
        }
        py::list others;
        for (const song::Candidate& other : std::span(found).subspan(1)) {
            others.append(to_dict(other));
        }
        py::dict answer = to_dict(found.front());
        answer["others"] = others;
        return answer;
    }

    [[nodiscard]] std::vector<std::int64_t> same_recordings(std::uint32_t frames,
                                                            const py::bytes& first,
                                                            const py::bytes& second) const {
        const auto asked = std::make_shared<song::Fingerprint>();
        asked->frames = frames;
        asked->peaks[0] = peaks_of(first);
        asked->peaks[1] = peaks_of(second);
        return await_work<std::vector<std::int64_t>>(
            [snapshot = set_->snapshot(),
             asked](const CancelToken&) -> Result<std::vector<std::int64_t>> {
                return song::find_same_recordings(*snapshot, *asked, song_parameters);
            });
    }

private:
    /// Calls it; does nothing for None. Valid as long as the caller keeps it alive.
    static std::function<void()> called(const py::object& on_wait) {
        if (on_wait.is_none()) {
            return {};
        }
        return [&on_wait] { on_wait(); };
    }

    static py::list damaged_list(const std::vector<song::DamagedPart>& damaged) {
        py::list list;
        for (const song::DamagedPart& part : damaged) {
            list.append(py::make_tuple(to_text(part.name), to_text(part.reason)));
        }
        return list;
    }

    [[nodiscard]] std::vector<song::Candidate> find(
        const py::bytes& query, const std::vector<std::int64_t>& excluded,
        const std::function<void()>& between = {}) const {
        const HeldBuffer held(query);
        const auto asked = std::make_shared<song::Query>(
            value_or_raise(song::query_of(held.bytes(), song_parameters)));
        const auto without =
            std::make_shared<std::unordered_set<std::int64_t>>(excluded.begin(), excluded.end());
        return await_work<std::vector<song::Candidate>>(
            [snapshot = set_->snapshot(), asked,
             without](const CancelToken& token) -> Result<std::vector<song::Candidate>> {
                auto found = song::find_songs(
                    *snapshot, *asked, song_parameters,
                    [&without](std::int64_t song) { return without->contains(song); }, token);
                if (token.cancelled()) {
                    return Error{.code = ErrorCode::cancelled,
                                 .message = "the song search was canceled"};
                }
                return found;
            },
            OnSignal::leave, between);
    }

    std::shared_ptr<song::SongSet> set_;
};

}  // namespace

void register_song_index(py::module_& module) {
    py::class_<SongIndex>(module, "SongIndex", py::is_final(), plain_metaclass())
        .def(py::init<const std::string&>(), py::arg("folder"))
        .def("__reduce__", &refuse_pickling)
        .def("refresh", &SongIndex::refresh)
        .def("add", &SongIndex::add, py::arg("tracks"), py::arg("sequence"))
        .def("remove", &SongIndex::remove, py::arg("songs"), py::arg("sequence"))
        .def("publish", &SongIndex::publish, py::arg("covered_sequence"))
        .def("reset", &SongIndex::reset)
        .def("verify", &SongIndex::verify, py::arg("on_wait") = py::none())
        .def("damaged", &SongIndex::damaged)
        .def("songs", &SongIndex::songs)
        .def("statistics", &SongIndex::statistics)
        .def_property_readonly("generation", &SongIndex::generation)
        .def_property_readonly("covered_sequence", &SongIndex::covered_sequence)
        .def("same_recordings", &SongIndex::same_recordings, py::arg("frames"), py::arg("peaks_1"),
             py::arg("peaks_2"))
        .def("candidates", &SongIndex::candidates, py::arg("query"),
             py::arg("excluded") = std::vector<std::int64_t>())
        .def("identify", &SongIndex::identify, py::arg("query"),
             py::arg("excluded") = std::vector<std::int64_t>(), py::arg("on_wait") = py::none(),
             py::arg("min_confidence") = py::none());
}

}  // namespace polymux::bindings
