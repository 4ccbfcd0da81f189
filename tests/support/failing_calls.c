/* Preloaded, it lets the n-th of some system calls fail or end the process: any, or those on files below a folder. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[4096], wanted[32];
static long left;
static int failure, lasting, elsewhere, fired;

/* The n-th call of that name, and with `all` those that follow as well; an empty name ends it. Error 0 is SIGKILL.
   `below` may be empty; with `all_but_main` calls of the main thread do not count. */
void fail(const char *below, const char *call, long n, int error, int all, int all_but_main) {
    wanted[0] = 0;
    snprintf(folder, sizeof folder, "%s", below);
    failure = error;
    lasting = all;
    elsewhere = all_but_main;
    fired = 0;
    __atomic_store_n(&left, n, __ATOMIC_SEQ_CST);
    snprintf(wanted, sizeof wanted, "%s", call);
}

int has_failed(void) { return __atomic_load_n(&fired, __ATOMIC_SEQ_CST); }

static int fails(const char *call) {
    if (strcmp(call, wanted) != 0 || (elsewhere && gettid() == getpid())) return 0;
    long n = __atomic_fetch_sub(&left, 1, __ATOMIC_SEQ_CST);
    if (n > 1 || (n < 1 && !lasting)) return 0;
    __atomic_fetch_add(&fired, 1, __ATOMIC_SEQ_CST);
    if (failure == 0) kill(getpid(), SIGKILL);
    errno = failure;
    return 1;
}

static int fails_on(const char *call, const char *path) {
    return (!folder[0] || (path && strncmp(path, folder, strlen(folder)) == 0)) && fails(call);
}

static int fails_at(const char *call, int descriptor) {
    char link[64], path[4096];
    struct stat status;
    if (strcmp(call, wanted) != 0) return 0;
    /* Of pipes and events nobody can lose a byte. */
    if (fstat(descriptor, &status) != 0 || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    /* Of the folder itself: SQLite syncs it too, and goes on where that fails. */
    return strcmp(path, folder) != 0 && fails_on(call, path);
}

/* A function of the system's that fails where `condition` holds. */
#define WITH(condition, type, name, parameters, ...)                                            \
    type name parameters {                                                                      \
        return (condition) ? -1 : ((__typeof__(&name))dlsym(RTLD_NEXT, #name))(__VA_ARGS__);     \
    }

WITH(fails("socket"), int, socket, (int family, int kind, int protocol), family, kind, protocol)
WITH(fails("connect"), int, connect, (int at, const struct sockaddr *to, socklen_t size), at, to, size)
WITH(fails("getsockopt"), int, getsockopt, (int at, int level, int name, void *value, socklen_t *size), at, level, name,
     value, size)
WITH(fails("setsockopt"), int, setsockopt, (int at, int level, int name, const void *value, socklen_t size), at, level,
     name, value, size)
WITH(fails("send"), ssize_t, send, (int at, const void *data, size_t size, int flags), at, data, size, flags)
WITH(fails("recv"), ssize_t, recv, (int at, void *data, size_t size, int flags), at, data, size, flags)
WITH(fails_at("read", at), ssize_t, read, (int at, void *data, size_t size), at, data, size)
WITH(fails_at("read", at), ssize_t, pread, (int at, void *data, size_t size, off_t from), at, data, size, from)
WITH(fails_at("read", at), ssize_t, pread64, (int at, void *data, size_t size, off64_t from), at, data, size, from)
WITH(fails_at("write", at), ssize_t, write, (int at, const void *data, size_t size), at, data, size)
WITH(fails_at("write", at), ssize_t, pwrite, (int at, const void *data, size_t size, off_t to), at, data, size, to)
WITH(fails_at("write", at), ssize_t, pwrite64, (int at, const void *data, size_t size, off64_t to), at, data, size, to)
WITH(fails_at("fsync", at), int, fsync, (int at), at)
WITH(fails_at("fsync", at), int, fdatasync, (int at), at)
WITH(fails_on("rename", to), int, rename, (const char *from, const char *to), from, to)
WITH(fails_on("rename", to), int, renameat, (int at, const char *from, int other, const char *to), at, from, other, to)
WITH(fails_on("link", to), int, link, (const char *from, const char *to), from, to)
WITH(fails_on("link", to), int, linkat, (int at, const char *from, int other, const char *to, int flags), at, from,
     other, to, flags)
WITH(fails_on("unlink", path), int, unlink, (const char *path), path)
WITH(fails_on("mkdir", path), int, mkdir, (const char *path, mode_t mode), path, mode)

#define OPENING(name)                                                                                  \
    int name(const char *path, int flags, ...) {                                                       \
        va_list rest;                                                                                  \
        va_start(rest, flags);                                                                         \
        mode_t mode = va_arg(rest, mode_t);                                                            \
        va_end(rest);                                                                                  \
        /* Below a folder only what may write. */                                                      \
        int counts = !folder[0] || flags & (O_WRONLY | O_RDWR | O_CREAT);                              \
        if (counts && fails_on("open", path)) return -1;                                               \
        return ((__typeof__(&name))dlsym(RTLD_NEXT, #name))(path, flags, mode);                        \
    }
OPENING(open)
OPENING(open64)
