// Progress of the media core's work, for Python threads that wait for it.
#pragma once

#include <chrono>
#include <mutex>
#include <utility>

#include "job.hpp"
#include "polymux/media/convert.hpp"

namespace polymux::bindings {

py::dict progress_dict(const media::Progress& progress);
py::dict warning_dict(const media::Warning& warning);

/// A job that reports its progress. Thread-safe.
template <typename T>
class ProgressJob : public ResultJob<T> {
public:
    void set_progress(const media::Progress& progress) {
        const std::scoped_lock lock(mutex_);
        progress_ = progress;
        ++updates_;
    }

    /// The progress and how often it changed.
    std::pair<media::Progress, int> progress() const {
        const std::scoped_lock lock(mutex_);
        return {progress_, updates_};
    }

private:
    mutable std::mutex mutex_;
    media::Progress progress_;
    int updates_ = 0;
};

/// Passes a job's progress to a Python callable, at most ten times a second.
template <typename T>
class ProgressRelay {
public:
    /// Both must outlive this object. GIL held.
    ProgressRelay(const ProgressJob<T>& job, const py::object& callback)
        : job_(job), callback_(callback) {}

    /// Raises the callable's exceptions. GIL held.
    void operator()() {
        constexpr std::chrono::milliseconds interval{100};
        const auto now = std::chrono::steady_clock::now();
        const auto [progress, updates] = job_.progress();
        if (updates == seen_ || now - last_call_ < interval) {
            return;
        }
        seen_ = updates;
        last_call_ = now;
        invoke(callback_, py::make_tuple(progress_dict(progress)));
    }

private:
    const ProgressJob<T>& job_;
    const py::object& callback_;
    std::chrono::steady_clock::time_point last_call_;  ///< Initially long ago.
    int seen_ = 0;
};

}  // namespace polymux::bindings
