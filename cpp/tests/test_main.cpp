#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#if defined(__SANITIZE_THREAD__)
// The pool promises to work in a forked child; ThreadSanitizer would end one that starts threads.
// Its library must see this function, which hidden visibility would keep from it.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {
    return "die_after_fork=0";
}

// A socket that is not connected yet is closed by libcurl 7.88 before it says that it is to be
// watched no more. Its number may be another thread's by then; the kernel knows it not to be of the
// engine's set, and refuses.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
    return "race:polymux::transport::Engine::watch\n";
}
#endif
