/* Preloaded, it lets the n-th of some system calls fail, whoever makes it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char wanted[32];
static long left;
static int failure, elsewhere, fired;

/* `all_but_main`: calls of the main thread do not count. An n of 0 ends it. */
void fail(const char *call, long n, int error, int all_but_main) {
    __atomic_store_n(&left, 0, __ATOMIC_SEQ_CST);
    strncpy(wanted, call, sizeof wanted - 1);
    failure = error;
    elsewhere = all_but_main;
    __atomic_store_n(&fired, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&left, n, __ATOMIC_SEQ_CST);
}

int has_failed(void) { return __atomic_load_n(&fired, __ATOMIC_SEQ_CST); }

static int fails(const char *call) {
    if (__atomic_load_n(&left, __ATOMIC_SEQ_CST) <= 0 || strcmp(call, wanted) != 0) return 0;
    if (elsewhere && gettid() == getpid()) return 0;
    if (__atomic_fetch_sub(&left, 1, __ATOMIC_SEQ_CST) != 1) return 0;
    __atomic_store_n(&fired, 1, __ATOMIC_SEQ_CST);
    errno = failure;
    return 1;
}

/* Of pipes and events nobody can lose a byte: only files fail to be read and written. */
static int is_file(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int socket(int family, int kind, int protocol) {
    return fails("socket") ? -1 : NEXT(socket)(family, kind, protocol);
}
int connect(int descriptor, const struct sockaddr *address, socklen_t size) {
    return fails("connect") ? -1 : NEXT(connect)(descriptor, address, size);
}
int getsockopt(int descriptor, int level, int name, void *value, socklen_t *size) {
    return fails("getsockopt") ? -1 : NEXT(getsockopt)(descriptor, level, name, value, size);
}
int setsockopt(int descriptor, int level, int name, const void *value, socklen_t size) {
    return fails("setsockopt") ? -1 : NEXT(setsockopt)(descriptor, level, name, value, size);
}
ssize_t send(int descriptor, const void *data, size_t size, int flags) {
    return fails("send") ? -1 : NEXT(send)(descriptor, data, size, flags);
}
ssize_t recv(int descriptor, void *data, size_t size, int flags) {
    return fails("recv") ? -1 : NEXT(recv)(descriptor, data, size, flags);
}
ssize_t read(int descriptor, void *data, size_t size) {
    return is_file(descriptor) && fails("read") ? -1 : NEXT(read)(descriptor, data, size);
}
ssize_t pread(int descriptor, void *data, size_t size, off_t at) {
    return fails("read") ? -1 : NEXT(pread)(descriptor, data, size, at);
}
ssize_t pread64(int descriptor, void *data, size_t size, off64_t at) {
    return fails("read") ? -1 : NEXT(pread64)(descriptor, data, size, at);
}
ssize_t write(int descriptor, const void *data, size_t size) {
    return is_file(descriptor) && fails("write") ? -1 : NEXT(write)(descriptor, data, size);
}
int fsync(int descriptor) { return fails("fsync") ? -1 : NEXT(fsync)(descriptor); }
int rename(const char *from, const char *to) {
    return fails("rename") ? -1 : NEXT(rename)(from, to);
}
int renameat(int at, const char *from, int other, const char *to) {
    return fails("rename") ? -1 : NEXT(renameat)(at, from, other, to);
}
int linkat(int at, const char *from, int other, const char *to, int flags) {
    return fails("link") ? -1 : NEXT(linkat)(at, from, other, to, flags);
}
int link(const char *from, const char *to) { return fails("link") ? -1 : NEXT(link)(from, to); }

#define OPENING(name)                                                 \
    int name(const char *path, int flags, ...) {                      \
        va_list rest;                                                 \
        va_start(rest, flags);                                        \
        mode_t mode = va_arg(rest, mode_t);                           \
        va_end(rest);                                                 \
        return fails("open") ? -1 : NEXT(name)(path, flags, mode);    \
    }
OPENING(open)
OPENING(open64)
