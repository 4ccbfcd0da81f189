// What keeps threads of Python apart that run at once, where no GIL does it.
//
// Three means, for three needs: `GilLock` for a few members of a C++ object, `Claim` for work that
// lets others run in its midst, and pybind11's `scoped_critical_section` for all of a Python
// object between two such moments. The first and the last are nothing where there is a GIL.
#pragma once

#include <Python.h>

#include <atomic>

namespace polymux::bindings {

/// Guards members that the GIL guards where there is one. For a few instructions of threads that
/// are attached: no Python code, no reference that may be the last, no waiting. So no thread is
/// stopped, and no process forked, while one is held.
class GilLock {
public:
    GilLock() = default;
    GilLock(const GilLock&) = delete;
    GilLock& operator=(const GilLock&) = delete;

#ifdef Py_GIL_DISABLED
    void lock() noexcept { PyMutex_Lock(&mutex_); }
    void unlock() noexcept { PyMutex_Unlock(&mutex_); }

private:
    PyMutex mutex_{};
#else
    void lock() noexcept {}
    void unlock() noexcept {}
#endif
};

/// One at a time: false for whoever comes while another has it. Nobody waits. Sequentially
/// consistent, so that of two who set a flag before they claim and look for it after, one sees it.
class Claim {
public:
    explicit Claim(std::atomic<bool>& claimed) noexcept
        : claimed_(claimed), mine_(!claimed.exchange(true)) {}
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ~Claim() {
        if (mine_) claimed_ = false;
    }

    [[nodiscard]] explicit operator bool() const noexcept { return mine_; }

private:
    std::atomic<bool>& claimed_;
    const bool mine_;
};

}  // namespace polymux::bindings
