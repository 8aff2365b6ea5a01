/* Makes input and output of a process fail below Python, for files under one folder.
 *
 * Preloaded (LD_PRELOAD) into every process of a run. FAILING_IO_FOLDER names the folder,
 * FAILING_IO_CONTROL a file that all processes map: it counts the calls of each class and says which
 * of them fail, and how. A call belongs to the folder if its path, or its descriptor's, lies below it.
 * So native writers (fastText's stream, Arrow, DuckDB, safetensors) are hit like Python's own.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LIST, STAT, OPEN, READ, WRITE, SYNC, NAME };

struct control {
    _Atomic long calls[8];  /* counted by class */
    _Atomic long class;     /* that fails; -1: none */
    _Atomic long first;     /* the first call that fails, counted from 1 */
    _Atomic long times;     /* how many fail, one after another */
    _Atomic long error;     /* errno; 0: a write or read transfers half */
    _Atomic long struck;    /* how many have failed */
};

static struct control *control;
static const char *folder;
static size_t folder_length;

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAILING_IO_CONTROL");
    folder = getenv("FAILING_IO_FOLDER");
    if (!path || !folder) return;
    folder_length = strlen(folder);
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    int file = real(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void *found = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (found != MAP_FAILED) control = found;
}

static int below(const char *path) {
    return path && !strncmp(path, folder, folder_length) &&
           (path[folder_length] == '/' || path[folder_length] == 0);
}

static int of_path(int directory, const char *path) {
    if (!control || !path) return 0;
    if (path[0] == '/') return below(path);
    char link[64], found[4096];
    if (directory == AT_FDCWD) strcpy(link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    ssize_t length = readlink(link, found, sizeof found - 1);
    if (length < 0) return 0;
    found[length] = 0;
    return below(found);
}

static int of_descriptor(int descriptor) {
    if (!control || descriptor < 0) return 0;
    char link[64], found[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, found, sizeof found - 1);
    if (length < 0) return 0;
    found[length] = 0;
    return below(found);
}

/* Counts a call; whether it fails. */
static int strikes(int class) {
    long call = atomic_fetch_add(&control->calls[class], 1) + 1;
    if (atomic_load(&control->class) != class) return 0;
    long first = atomic_load(&control->first);
    if (call < first || call - first >= atomic_load(&control->times)) return 0;
    atomic_fetch_add(&control->struck, 1);
    return 1;
}

/* Whether the call fails; errno is then set, and otherwise untouched. */
static int fails(int hit, int class) {
    int before = errno;
    if (hit && strikes(class)) {
        errno = (int)atomic_load(&control->error);
        return 1;
    }
    errno = before;
    return 0;
}

/* How many bytes a transfer moves: all, half of them (a short one), or -1 if it fails. */
static ssize_t moves(int descriptor, int class, size_t size) {
    int before = errno;
    if (of_descriptor(descriptor) && strikes(class)) {
        errno = (int)atomic_load(&control->error);
        if (errno) return -1;
        size = size > 1 ? size / 2 : size;
    }
    errno = before;
    return (ssize_t)size;
}

/* Opening to write makes a name, opening to read is a class of its own. */
static int opening(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT)) ? NAME : OPEN; }

#define OPEN_CALL(name) \
    int name(const char *path, int flags, ...) { \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = va_arg(more, mode_t); \
        va_end(more); \
        REAL(int, #name, const char *, int, ...); \
        if (fails(of_path(AT_FDCWD, path), opening(flags))) return -1; \
        return real(path, flags, mode); \
    }
OPEN_CALL(open)
OPEN_CALL(open64)

#define OPENAT_CALL(name) \
    int name(int at, const char *path, int flags, ...) { \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = va_arg(more, mode_t); \
        va_end(more); \
        REAL(int, #name, int, const char *, int, ...); \
        if (fails(of_path(at, path), opening(flags))) return -1; \
        return real(at, path, flags, mode); \
    }
OPENAT_CALL(openat)
OPENAT_CALL(openat64)

#define FOPEN_CALL(name) \
    FILE *name(const char *path, const char *mode) { \
        REAL(FILE *, #name, const char *, const char *); \
        if (fails(of_path(AT_FDCWD, path), strchr(mode, 'r') && !strchr(mode, '+') ? OPEN : NAME)) \
            return NULL; \
        return real(path, mode); \
    }
FOPEN_CALL(fopen)
FOPEN_CALL(fopen64)

/* Listing. */
DIR *opendir(const char *path) {
    REAL(DIR *, "opendir", const char *);
    return fails(of_path(AT_FDCWD, path), LIST) ? NULL : real(path);
}
DIR *fdopendir(int descriptor) {
    REAL(DIR *, "fdopendir", int);
    return fails(of_descriptor(descriptor), LIST) ? NULL : real(descriptor);
}
struct dirent *readdir(DIR *directory) {
    REAL(struct dirent *, "readdir", DIR *);
    return fails(of_descriptor(dirfd(directory)), LIST) ? NULL : real(directory);
}
struct dirent64 *readdir64(DIR *directory) {
    REAL(struct dirent64 *, "readdir64", DIR *);
    return fails(of_descriptor(dirfd(directory)), LIST) ? NULL : real(directory);
}

/* Asking about a name. */
#define STAT_CALL(name, type) \
    int name(const char *path, struct type *status) { \
        REAL(int, #name, const char *, struct type *); \
        return fails(of_path(AT_FDCWD, path), STAT) ? -1 : real(path, status); \
    }
STAT_CALL(stat, stat)
STAT_CALL(lstat, stat)
STAT_CALL(stat64, stat64)
STAT_CALL(lstat64, stat64)
#define STATAT_CALL(name, type) \
    int name(int at, const char *path, struct type *status, int flags) { \
        REAL(int, #name, int, const char *, struct type *, int); \
        return fails(of_path(at, path), STAT) ? -1 : real(at, path, status, flags); \
    }
STATAT_CALL(fstatat, stat)
STATAT_CALL(fstatat64, stat64)
int statx(int at, const char *restrict path, int flags, unsigned mask, struct statx *restrict out) {
    REAL(int, "statx", int, const char *, int, unsigned, struct statx *);
    int hit = path[0] ? of_path(at, path) : of_descriptor(at);
    return fails(hit, STAT) ? -1 : real(at, path, flags, mask, out);
}

/* Moving bytes. */
ssize_t read(int descriptor, void *to, size_t size) {
    REAL(ssize_t, "read", int, void *, size_t);
    ssize_t most = moves(descriptor, READ, size);
    return most < 0 ? -1 : real(descriptor, to, most);
}
ssize_t write(int descriptor, const void *from, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    ssize_t most = moves(descriptor, WRITE, size);
    return most < 0 ? -1 : real(descriptor, from, most);
}
#define POSITIONED(name, class, pointer, offset) \
    ssize_t name(int descriptor, pointer bytes, size_t size, offset place) { \
        REAL(ssize_t, #name, int, pointer, size_t, offset); \
        ssize_t most = moves(descriptor, class, size); \
        return most < 0 ? -1 : real(descriptor, bytes, most, place); \
    }
POSITIONED(pread, READ, void *, off_t)
POSITIONED(pread64, READ, void *, off64_t)
POSITIONED(pwrite, WRITE, const void *, off_t)
POSITIONED(pwrite64, WRITE, const void *, off64_t)
ssize_t readv(int descriptor, const struct iovec *parts, int count) {
    REAL(ssize_t, "readv", int, const struct iovec *, int);
    ssize_t most = moves(descriptor, READ, 2);
    return most < 0 ? -1 : real(descriptor, parts, most == 1 ? 1 : count);
}
ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    ssize_t most = moves(descriptor, WRITE, 2);
    return most < 0 ? -1 : real(descriptor, parts, most == 1 ? 1 : count);
}
size_t fwrite(const void *restrict from, size_t size, size_t count, FILE *restrict stream) {
    REAL(size_t, "fwrite", const void *, size_t, size_t, FILE *);
    ssize_t most = moves(fileno(stream), WRITE, size * count);
    return most < 0 ? 0 : real(from, size, count, stream);
}
ssize_t sendfile(int to, int from, off_t *place, size_t size) {
    REAL(ssize_t, "sendfile", int, int, off_t *, size_t);
    ssize_t most = moves(to, WRITE, size);
    return most < 0 ? -1 : real(to, from, place, most);
}
ssize_t copy_file_range(int from, off64_t *start, int to, off64_t *place, size_t size, unsigned flags) {
    REAL(ssize_t, "copy_file_range", int, off64_t *, int, off64_t *, size_t, unsigned);
    ssize_t most = moves(to, WRITE, size);
    return most < 0 ? -1 : real(from, start, to, place, most, flags);
}

/* Making durable. */
#define SYNC_CALL(name) \
    int name(int descriptor) { \
        REAL(int, #name, int); \
        return fails(of_descriptor(descriptor), SYNC) ? -1 : real(descriptor); \
    }
SYNC_CALL(fsync)
SYNC_CALL(fdatasync)

/* Naming. */
int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    return fails(of_path(AT_FDCWD, path), NAME) ? -1 : real(path, mode);
}
int link(const char *from, const char *to) {
    REAL(int, "link", const char *, const char *);
    return fails(of_path(AT_FDCWD, to), NAME) ? -1 : real(from, to);
}
int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    REAL(int, "linkat", int, const char *, int, const char *, int);
    return fails(of_path(to_at, to), NAME) ? -1 : real(from_at, from, to_at, to, flags);
}
int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    return fails(of_path(AT_FDCWD, to), NAME) ? -1 : real(from, to);
}
int renameat(int from_at, const char *from, int to_at, const char *to) {
    REAL(int, "renameat", int, const char *, int, const char *);
    return fails(of_path(to_at, to), NAME) ? -1 : real(from_at, from, to_at, to);
}
int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    return fails(of_path(AT_FDCWD, path), NAME) ? -1 : real(path);
}
int unlinkat(int at, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    return fails(of_path(at, path), NAME) ? -1 : real(at, path, flags);
}
int rmdir(const char *path) {
    REAL(int, "rmdir", const char *);
    return fails(of_path(AT_FDCWD, path), NAME) ? -1 : real(path);
}
