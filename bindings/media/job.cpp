#include "job.hpp"

#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "polymux/pool.hpp"

namespace polymux::bindings {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds signal_interval{50};
/// How long a canceled job may take to stop. The core needs a few milliseconds. The caller's code
/// may block forever, for example in a read from a terminal, and is then abandoned.
constexpr milliseconds core_grace{2000};
constexpr milliseconds python_grace{150};

/// The unfinished jobs of this process. Never freed, because working threads may outlive `main`.
struct Registry {
    const pid_t process = getpid();
    std::mutex mutex;
    std::vector<std::shared_ptr<Job>> jobs;
    int entries = 0;
    bool exiting = false;
};

/// A forked child gets a new one, because its parent's may be locked forever.
Registry& registry() {
    static std::atomic<Registry*> current{new Registry};
    Registry* found = current.load();
    if (found->process != getpid()) {
        auto fresh = std::make_unique<Registry>();
        if (current.compare_exchange_strong(found, fresh.get())) {
            found = fresh.release();
        }
    }
    return *found;
}

void add_to_registry(const std::shared_ptr<Job>& job) {
    Registry& all = registry();
    const std::scoped_lock lock(all.mutex);
    all.jobs.push_back(job);
}

void remove_from_registry(const Job* job) {
    Registry& all = registry();
    const std::scoped_lock lock(all.mutex);
    std::erase_if(all.jobs, [job](const auto& other) { return other.get() == job; });
}

/// Set on threads of the pool. A job started there, for example by a read method that converts
/// another file, would wait for the worker that waits for it. It runs immediately instead.
thread_local bool on_pool_thread = false;

void exit_handler() {
    Registry& all = registry();
    std::vector<std::shared_ptr<Job>> left;
    {
        const std::scoped_lock lock(all.mutex);
        all.exiting = true;
        left = all.jobs;
    }
    for (const auto& job : left) {
        job->cancel();
    }
    const auto began = steady_clock::now();
    const auto may_wait_for = [&](const std::shared_ptr<Job>& job) {
        const auto waited = steady_clock::now() - began;
        return waited < (job->calls().inside() ? python_grace : core_grace);
    };
    for (const auto& job : left) {
        while (may_wait_for(job) && !job->wait_for(milliseconds(10))) {
        }
    }
    left.clear();
    const auto entered = [&all] {
        const std::scoped_lock lock(all.mutex);
        return all.entries > 0;
    };
    while (entered() && steady_clock::now() - began < core_grace) {
        without_gil([] { std::this_thread::sleep_for(milliseconds(1)); });
    }
    close_interpreter();
}

}  // namespace

Entry::Entry() {
    Registry& all = registry();
    const std::scoped_lock lock(all.mutex);
    if (all.exiting) {
        throw std::runtime_error(
            "polymux cannot start work while the Python interpreter is exiting");
    }
    ++all.entries;
}

Entry::~Entry() {
    Registry& all = registry();
    const std::scoped_lock lock(all.mutex);
    --all.entries;
}

Job::Job() : process_(getpid()) {}

bool Job::foreign() const noexcept {
    return process_ != getpid();
}

void Job::start(Place place, py::object on_done) {
    on_done_ = Reference(std::move(on_done));
    const std::shared_ptr<Job> self = shared_from_this();
    add_to_registry(self);
    try {
        if (place == Place::own_thread) {
            std::thread([self] { self->execute(); }).detach();
        } else if (on_pool_thread) {
            without_gil([self] { self->execute(); });
        } else {
            Pool::instance().submit([self] {
                // The pool runs it on this thread if it has no other.
                const bool before = std::exchange(on_pool_thread, true);
                self->execute();
                on_pool_thread = before;
            });
        }
    } catch (const std::exception&) {
        remove_from_registry(this);
        throw;
    }
}

void Job::execute() {
    Phase expected = Phase::queued;
    if (phase_.compare_exchange_strong(expected, Phase::running)) {
        run();
        finish();
    }
}

void Job::cancel() {
    token_.cancel();
    Phase expected = Phase::queued;
    if (phase_.compare_exchange_strong(expected, Phase::running)) {
        abandon();
        finish();
    }
}

void Job::finish() {
    {
        const std::scoped_lock lock(mutex_);
        phase_ = Phase::finished;
    }
    changed_.notify_all();
    if (on_done_) {
        with_gil([this] {
            const py::error_scope pending;  // An exception may be set here.
            const py::object callback = py::reinterpret_borrow<py::object>(on_done_.get());
            on_done_.reset();
            try {
                invoke(callback);
            } catch (py::error_already_set& raised) {
                raised.restore();
                PyErr_WriteUnraisable(callback.ptr());
            }
        });
    }
    remove_from_registry(this);
}

bool Job::wait_for(milliseconds limit) {
    if (!finished()) {
        without_gil([&] {
            std::unique_lock lock(mutex_);
            changed_.wait_for(lock, limit, [this] { return finished(); });
        });
    }
    return finished();
}

void Job::await(const std::function<void()>& between) {
    while (!wait_for(signal_interval)) {
        try {
            if (PyErr_CheckSignals() != 0) {
                throw py::error_already_set();
            }
            if (between) {
                between();
            }
        } catch (const std::exception&) {
            end_after_cancel();
            throw;
        }
    }
}

void Job::await_checked(const py::object& check) {
    if (check.is_none()) {
        await();
    } else {
        await([&check] { invoke(check); });
    }
}

void Job::end_after_cancel() {
    cancel();
    const auto began = steady_clock::now();
    while (!wait_for(milliseconds(10))) {
        if (steady_clock::now() - began > (calls().inside() ? python_grace : core_grace)) {
            return;
        }
    }
}

void register_exit_handler() {
    py::module_::import("atexit").attr("register")(py::cpp_function(&exit_handler));
}

}  // namespace polymux::bindings
