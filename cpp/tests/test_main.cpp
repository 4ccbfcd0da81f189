#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#if defined(__SANITIZE_THREAD__)
// The pool supports forked children; ThreadSanitizer would end one that starts threads. Its library
// must see this function, which hidden visibility would prevent.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {
    return "die_after_fork=0";
}

// libcurl 7.88 closes an unconnected socket before it stops watching it. Its number may be another
// thread's by then; the kernel refuses the call, because that descriptor is not in the engine's
// epoll set.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
    return "race:polymux::transport::Engine::watch\n";
}
#endif
