// Synchronizes concurrent Python threads in builds without a GIL.
//
// Three tools: `GilLock` for a few members of a C++ object, `Claim` for work during which other
// threads may run, and pybind11's `scoped_critical_section` for a whole Python object between two
// such points. With a GIL, the first and the last do nothing.
#pragma once

#include <Python.h>

#include <atomic>

namespace polymux::bindings {

/// Guards members that the GIL protects in other builds. Only a thread that is attached to the
/// interpreter may hold it, and only for a few instructions: it must not run Python code, drop a
/// last reference, or wait. Then no thread is stopped, and no process is forked, while it is held.
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

/// Exclusive access without waiting: converts to false if another thread has it. Sequentially
/// consistent: if two threads set a flag before the claim and read it afterwards, at least one sees
/// the other's flag.
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
