/* Preloaded, it lets the n-th of some system calls on files below a folder fail, or end the process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[4096];
static char wanted[32];
static long left;
static int failure, lasting;
static int fired;

/* From the n-th call of that name on: the n-th alone, or all that follow as well. Error 0 is SIGKILL. */
void fail(const char *below, const char *call, long n, int error, int all) {
    snprintf(folder, sizeof folder, "%s", below);
    snprintf(wanted, sizeof wanted, "%s", call);
    left = n;
    failure = error;
    lasting = all;
    fired = 0;
}

int has_failed(void) { return fired; }

static int is_below(const char *path) {
    return folder[0] && path && strncmp(path, folder, strlen(folder)) == 0;
}

static int fails(const char *call, const char *path) {
    if (strcmp(call, wanted) != 0 || !is_below(path)) return 0;
    if (left > 0) --left;
    if (left > 0 || (fired && !lasting)) return 0;
    ++fired;
    if (failure == 0) kill(getpid(), SIGKILL);
    errno = failure;
    return 1;
}

static int fails_at(const char *call, int descriptor) {
    char link[64], path[4096];
    if (strcmp(call, wanted) != 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    /* Of the folder itself: SQLite syncs it too, and goes on where that fails. */
    if (strcmp(path, folder) == 0) return 0;
    return fails(call, path);
}

#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))

ssize_t write(int descriptor, const void *data, size_t size) {
    if (fails_at("write", descriptor)) return -1;
    return NEXT(ssize_t(*)(int, const void *, size_t), "write")(descriptor, data, size);
}

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t at) {
    if (fails_at("write", descriptor)) return -1;
    return NEXT(ssize_t(*)(int, const void *, size_t, off_t), "pwrite")(descriptor, data, size, at);
}

ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t at) {
    if (fails_at("write", descriptor)) return -1;
    return NEXT(ssize_t(*)(int, const void *, size_t, off64_t), "pwrite64")(descriptor, data, size,
                                                                            at);
}

ssize_t read(int descriptor, void *data, size_t size) {
    if (fails_at("read", descriptor)) return -1;
    return NEXT(ssize_t(*)(int, void *, size_t), "read")(descriptor, data, size);
}

ssize_t pread(int descriptor, void *data, size_t size, off_t at) {
    if (fails_at("read", descriptor)) return -1;
    return NEXT(ssize_t(*)(int, void *, size_t, off_t), "pread")(descriptor, data, size, at);
}

ssize_t pread64(int descriptor, void *data, size_t size, off64_t at) {
    if (fails_at("read", descriptor)) return -1;
    return NEXT(ssize_t(*)(int, void *, size_t, off64_t), "pread64")(descriptor, data, size, at);
}

int fsync(int descriptor) {
    if (fails_at("fsync", descriptor)) return -1;
    return NEXT(int (*)(int), "fsync")(descriptor);
}

int fdatasync(int descriptor) {
    if (fails_at("fsync", descriptor)) return -1;
    return NEXT(int (*)(int), "fdatasync")(descriptor);
}

int rename(const char *from, const char *to) {
    if (fails("rename", to)) return -1;
    return NEXT(int (*)(const char *, const char *), "rename")(from, to);
}

int renameat(int at, const char *from, int other, const char *to) {
    if (fails("rename", to)) return -1;
    return NEXT(int (*)(int, const char *, int, const char *), "renameat")(at, from, other, to);
}

int unlink(const char *path) {
    if (fails("unlink", path)) return -1;
    return NEXT(int (*)(const char *), "unlink")(path);
}

int ftruncate64(int descriptor, off64_t size) {
    if (fails_at("truncate", descriptor)) return -1;
    return NEXT(int (*)(int, off64_t), "ftruncate64")(descriptor, size);
}

int ftruncate(int descriptor, off_t size) {
    if (fails_at("truncate", descriptor)) return -1;
    return NEXT(int (*)(int, off_t), "ftruncate")(descriptor, size);
}

int mkdir(const char *path, mode_t mode) {
    if (fails("mkdir", path)) return -1;
    return NEXT(int (*)(const char *, mode_t), "mkdir")(path, mode);
}

#define OPENING(name)                                                                      \
    int name(const char *path, int flags, ...) {                                           \
        va_list rest;                                                                      \
        va_start(rest, flags);                                                             \
        mode_t mode = va_arg(rest, mode_t);                                                \
        va_end(rest);                                                                      \
        if ((flags & (O_WRONLY | O_RDWR | O_CREAT)) && fails("open", path)) return -1;     \
        return NEXT(int (*)(const char *, int, ...), #name)(path, flags, mode);            \
    }
OPENING(open)
OPENING(open64)
