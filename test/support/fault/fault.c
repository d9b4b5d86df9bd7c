/*
 * Disk faults, a durable shadow and a movable wall clock for one process, by LD_PRELOAD.
 *
 * Rules live in a control file (FAULT_CONTROL) that is mapped shared, so that a test can switch them while the
 * process runs and read how often each one was met. A rule names calls (bits of `ops`), a part of the path, the
 * number of calls that pass before it acts, how often it acts, and what it does: fail with an errno, drop the call
 * (claim success, do nothing) or kill the process. The layout is mirrored in fault-control.ts.
 *
 * Shadow (FAULT_SHADOW_FROM, FAULT_SHADOW_TO): what a disk would hold if the power failed. A synced file's bytes are
 * copied to files/<identity>; a synced directory's entries are listed in directories/<identity>. A file of which only
 * the name was synced is empty after the failure, a file of which only the bytes were synced has no name: as POSIX
 * allows. Identity is inode number and birth time, because inode numbers are used again. A file of which a sync was made to
 * fail is noted in lost/<identity> and takes nothing from later syncs: the system may have dropped what it could not write.
 *
 * Only calls that go through the C library are seen: those of SQLite and of the native addon do. Of the runtime's own
 * file functions, syncs, renames, truncations and unlinks do; opening, writing and mkdir do not.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MAGIC 0x544c4146u /* "FALT" */
#define RULES_MAX 16

enum { OP_WRITE = 1, OP_SYNC = 2, OP_TRUNCATE = 4, OP_CREATE = 8, OP_RENAME = 16, OP_OPEN = 32, OP_UNLINK = 64, OP_MKDIR = 128, OP_DIRSYNC = 256, OP_READ = 512, OP_FSSYNC = 1024 };
enum { ACTION_FAIL = 0, ACTION_DROP = 1, ACTION_KILL = 2 };

struct rule {
  _Atomic uint32_t enabled;
  uint32_t ops;
  uint32_t action;
  int32_t error;
  uint32_t skip;       /* matching calls that pass before the rule acts */
  uint32_t times;      /* how often it acts; 0 is always */
  _Atomic uint32_t met;   /* matching calls seen */
  _Atomic uint32_t acted; /* times acted */
  char path[128];
  char exists[96];     /* it acts only while this file exists; empty: always */
};

struct control {
  uint32_t magic;
  uint32_t version;
  _Atomic int64_t clock_offset_ms; /* added to the wall clock */
  uint32_t pad[12];
  struct rule rules[RULES_MAX];
};

static struct control *control;
static char shadow_from[PATH_MAX], shadow_to[PATH_MAX];
static size_t shadow_from_length;
static pthread_mutex_t shadow_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t shadow_serial;

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void start(void) {
  const char *path = getenv("FAULT_CONTROL");
  if (path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
      void *memory = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (memory != MAP_FAILED && ((struct control *)memory)->magic == MAGIC) control = memory;
      close(fd);
    }
    if (!control) {
      dprintf(2, "fault library: the control file %s cannot be used\n", path);
      _exit(97);
    }
  }
  const char *from = getenv("FAULT_SHADOW_FROM"), *to = getenv("FAULT_SHADOW_TO");
  if (from && to) {
    snprintf(shadow_from, sizeof shadow_from, "%s", from);
    snprintf(shadow_to, sizeof shadow_to, "%s", to);
    shadow_from_length = strlen(shadow_from);
  }
}

/* A rule's path is a part of the file's path; one that ends in `$` is its end. */
static int names(const struct rule *rule, const char *path) {
  size_t length = strlen(rule->path);
  if (!length || rule->path[length - 1] != '$') return strstr(path, rule->path) != NULL;
  size_t whole = strlen(path);
  return whole >= length - 1 && !strncmp(path + whole - (length - 1), rule->path, length - 1);
}

/* 0: go on; 1: drop the call; -1: errno is set, fail. */
static int judge(uint32_t op, const char *path) {
  for (int i = 0; i < RULES_MAX; i++) {
    struct rule *rule = &control->rules[i];
    if (!atomic_load_explicit(&rule->enabled, memory_order_acquire)) continue;
    if (!(rule->ops & op) || !names(rule, path)) continue;
    if (rule->exists[0] && syscall(SYS_faccessat, AT_FDCWD, rule->exists, F_OK) != 0) continue;
    uint32_t before = atomic_fetch_add(&rule->met, 1);
    if (before < rule->skip) continue;
    if (rule->times && before >= rule->skip + rule->times) continue;
    atomic_fetch_add(&rule->acted, 1);
    if (rule->action == ACTION_KILL) {
      kill(getpid(), SIGKILL);
      for (;;) pause();
    }
    if (rule->action == ACTION_DROP) return 1;
    errno = rule->error;
    return -1;
  }
  return 0;
}

static int path_of(int fd, char *path, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, size - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return path[0] == '/';
}

static int judge_fd(uint32_t op, int fd) {
  if (!control) return 0;
  int any = 0;
  for (int i = 0; i < RULES_MAX && !any; i++) {
    struct rule *rule = &control->rules[i];
    any = atomic_load_explicit(&rule->enabled, memory_order_acquire) && (rule->ops & op);
  }
  if (!any) return 0;
  int saved = errno;
  char path[PATH_MAX];
  if (!path_of(fd, path, sizeof path)) { errno = saved; return 0; }
  errno = saved;
  return judge(op, path);
}

static int judge_path(uint32_t op, int at, const char *path) {
  if (!control || !path) return 0;
  if (path[0] == '/' || at == AT_FDCWD) return judge(op, path);
  char whole[PATH_MAX * 2];
  int saved = errno;
  if (!path_of(at, whole, PATH_MAX)) { errno = saved; return 0; }
  errno = saved;
  strcat(whole, "/");
  strncat(whole, path, PATH_MAX - 1);
  return judge(op, whole);
}

/* ---- the durable shadow ---- */

static void identity(const struct statx *info, char *text, size_t size) {
  snprintf(text, size, "%llu-%lld-%u", (unsigned long long)info->stx_ino, (long long)info->stx_btime.tv_sec,
           info->stx_btime.tv_nsec);
}

static void shadow_failed(const char *what) {
  dprintf(2, "fault library: the shadow cannot be kept: %s: %s\n", what, strerror(errno));
  _exit(98);
}

static int open_real(const char *path, int flags, int mode) { return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode); }

static void shadow_file(int fd, const char *name) {
  char source[64], temporary[PATH_MAX + 256], target[PATH_MAX + 256];
  snprintf(target, sizeof target, "%s/lost/%s", shadow_to, name);
  if (syscall(SYS_faccessat, AT_FDCWD, target, F_OK) == 0) return;
  snprintf(source, sizeof source, "/proc/self/fd/%d", fd);
  snprintf(temporary, sizeof temporary, "%s/tmp/%llu", shadow_to, (unsigned long long)atomic_fetch_add(&shadow_serial, 1));
  snprintf(target, sizeof target, "%s/files/%s", shadow_to, name);
  int in = open_real(source, O_RDONLY | O_CLOEXEC, 0);
  int out = open_real(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (in < 0 || out < 0) shadow_failed("open");
  for (;;) {
    ssize_t copied = sendfile(out, in, NULL, 1 << 24);
    if (copied < 0) shadow_failed("copy");
    if (copied == 0) break;
  }
  close(in);
  close(out);
  if (syscall(SYS_renameat2, AT_FDCWD, temporary, AT_FDCWD, target, 0) < 0) shadow_failed("rename");
}

static void shadow_directory(int fd, const char *name) {
  char temporary[PATH_MAX + 256], target[PATH_MAX + 256], source[64], path[PATH_MAX];
  snprintf(source, sizeof source, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(source, path, sizeof path - 1);
  if (length < 0) shadow_failed("directory name");
  path[length] = 0;
  snprintf(temporary, sizeof temporary, "%s/tmp/%llu", shadow_to, (unsigned long long)atomic_fetch_add(&shadow_serial, 1));
  snprintf(target, sizeof target, "%s/directories/%s", shadow_to, name);
  int out = open_real(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  DIR *directory = opendir(path);
  if (out < 0 || !directory) shadow_failed("open directory");
  struct dirent *entry;
  while ((entry = readdir(directory))) {
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    struct statx info;
    if (statx(dirfd(directory), entry->d_name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &info) < 0) continue;
    char child[128], line[PATH_MAX + 160];
    identity(&info, child, sizeof child);
    int size = snprintf(line, sizeof line, "%c %s %s\n", S_ISDIR(info.stx_mode) ? 'd' : 'f', child, entry->d_name);
    if (syscall(SYS_write, out, line, size) != size) shadow_failed("list");
  }
  closedir(directory);
  close(out);
  if (syscall(SYS_renameat2, AT_FDCWD, temporary, AT_FDCWD, target, 0) < 0) shadow_failed("rename");
}

/* Of one file or directory; `below`: of everything in it, too. */
static void shadow_of(int fd, const char *path, int below) {
  struct statx info;
  if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &info) < 0) return;
  char name[128];
  identity(&info, name, sizeof name);
  if (S_ISREG(info.stx_mode)) shadow_file(fd, name);
  if (!S_ISDIR(info.stx_mode)) return;
  shadow_directory(fd, name);
  DIR *directory = below ? opendir(path) : NULL;
  if (!directory) return;
  struct dirent *entry;
  while ((entry = readdir(directory))) {
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    char child[PATH_MAX * 2];
    snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
    /* It may be gone by now. */
    int in = open_real(child, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (in < 0) continue;
    shadow_of(in, child, 1);
    close(in);
  }
  closedir(directory);
}

static void shadow(int fd) {
  if (!shadow_from_length) return;
  int saved = errno;
  char path[PATH_MAX];
  if (path_of(fd, path, sizeof path) && !strncmp(path, shadow_from, shadow_from_length) &&
      (path[shadow_from_length] == '/' || !path[shadow_from_length])) {
    pthread_mutex_lock(&shadow_lock);
    shadow_of(fd, path, 0);
    pthread_mutex_unlock(&shadow_lock);
  }
  errno = saved;
}

/* A sync that fails. */
static void shadow_lost(int fd) {
  struct statx info;
  if (!shadow_from_length || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &info) < 0 || !S_ISREG(info.stx_mode)) return;
  char name[128], path[PATH_MAX + 256];
  identity(&info, name, sizeof name);
  snprintf(path, sizeof path, "%s/lost/%s", shadow_to, name);
  int out = open_real(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (out < 0) shadow_failed("note a lost file");
  close(out);
}

/* A sync of the whole file system. */
static void shadow_all(void) {
  if (!shadow_from_length) return;
  int saved = errno;
  int root = open_real(shadow_from, O_RDONLY | O_CLOEXEC, 0);
  if (root >= 0) {
    pthread_mutex_lock(&shadow_lock);
    shadow_of(root, shadow_from, 1);
    pthread_mutex_unlock(&shadow_lock);
    close(root);
  }
  errno = saved;
}

/* ---- the calls ---- */

#define GUARD_FD(op, fd, dropped) do { int verdict = judge_fd(op, fd); if (verdict < 0) return -1; if (verdict > 0) return dropped; } while (0)
#define GUARD_PATH(op, at, path, dropped) do { int verdict = judge_path(op, at, path); if (verdict < 0) return -1; if (verdict > 0) return dropped; } while (0)

static ssize_t total(const struct iovec *parts, int count) {
  ssize_t bytes = 0;
  for (int i = 0; i < count; i++) bytes += (ssize_t)parts[i].iov_len;
  return bytes;
}

ssize_t write(int fd, const void *bytes, size_t size) { REAL(write); GUARD_FD(OP_WRITE, fd, (ssize_t)size); return real(fd, bytes, size); }
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) { REAL(pwrite); GUARD_FD(OP_WRITE, fd, (ssize_t)size); return real(fd, bytes, size, at); }
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) { REAL(pwrite64); GUARD_FD(OP_WRITE, fd, (ssize_t)size); return real(fd, bytes, size, at); }
ssize_t writev(int fd, const struct iovec *parts, int count) { REAL(writev); GUARD_FD(OP_WRITE, fd, total(parts, count)); return real(fd, parts, count); }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { REAL(pwritev); GUARD_FD(OP_WRITE, fd, total(parts, count)); return real(fd, parts, count, at); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) { REAL(pwritev64); GUARD_FD(OP_WRITE, fd, total(parts, count)); return real(fd, parts, count, at); }

ssize_t pread(int fd, void *bytes, size_t size, off_t at) { REAL(pread); GUARD_FD(OP_READ, fd, 0); return real(fd, bytes, size, at); }
ssize_t pread64(int fd, void *bytes, size_t size, off64_t at) { REAL(pread64); GUARD_FD(OP_READ, fd, 0); return real(fd, bytes, size, at); }

static uint32_t sync_op(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISDIR(info.st_mode) ? OP_DIRSYNC : OP_SYNC;
}
#define GUARD_SYNC(fd) do { int verdict = judge_fd(sync_op(fd), fd); if (verdict < 0) { int failure = errno; shadow_lost(fd); errno = failure; return -1; } if (verdict > 0) return 0; } while (0)
int fsync(int fd) { REAL(fsync); GUARD_SYNC(fd); int result = real(fd); if (result == 0) shadow(fd); return result; }
int fdatasync(int fd) { REAL(fdatasync); GUARD_SYNC(fd); int result = real(fd); if (result == 0) shadow(fd); return result; }
int syncfs(int fd) { REAL(syncfs); GUARD_FD(OP_FSSYNC, fd, 0); int result = real(fd); if (result == 0) shadow_all(); return result; }

int ftruncate(int fd, off_t size) { REAL(ftruncate); GUARD_FD(OP_TRUNCATE, fd, 0); return real(fd, size); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); GUARD_FD(OP_TRUNCATE, fd, 0); return real(fd, size); }

static int creates(int at, const char *path, int flags) { return (flags & O_CREAT) && faccessat(at, path, F_OK, 0) != 0; }

#define OPEN_MODE int mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, int); va_end(rest); }
#define GUARD_OPEN(at) do { if (control) { int saved = errno; uint32_t op = OP_OPEN | (creates(at, path, flags) ? OP_CREATE : 0); errno = saved; GUARD_PATH(op, at, path, -1); } } while (0)

int open(const char *path, int flags, ...) { OPEN_MODE; REAL(open); GUARD_OPEN(AT_FDCWD); return real(path, flags, mode); }
int open64(const char *path, int flags, ...) { OPEN_MODE; REAL(open64); GUARD_OPEN(AT_FDCWD); return real(path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { OPEN_MODE; REAL(openat); GUARD_OPEN(at); return real(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { OPEN_MODE; REAL(openat64); GUARD_OPEN(at); return real(at, path, flags, mode); }

int rename(const char *from, const char *to) { REAL(rename); GUARD_PATH(OP_RENAME, AT_FDCWD, to, 0); return real(from, to); }
int renameat(int from_at, const char *from, int to_at, const char *to) { REAL(renameat); GUARD_PATH(OP_RENAME, to_at, to, 0); return real(from_at, from, to_at, to); }
int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) { REAL(renameat2); GUARD_PATH(OP_RENAME, to_at, to, 0); return real(from_at, from, to_at, to, flags); }
int unlink(const char *path) { REAL(unlink); GUARD_PATH(OP_UNLINK, AT_FDCWD, path, 0); return real(path); }
int unlinkat(int at, const char *path, int flags) { REAL(unlinkat); GUARD_PATH(OP_UNLINK, at, path, 0); return real(at, path, flags); }
/* What is there already needs no room. */
int mkdir(const char *path, mode_t mode) { REAL(mkdir); if (syscall(SYS_faccessat, AT_FDCWD, path, F_OK) != 0) GUARD_PATH(OP_MKDIR, AT_FDCWD, path, 0); return real(path, mode); }
int mkdirat(int at, const char *path, mode_t mode) { REAL(mkdirat); if (syscall(SYS_faccessat, at, path, F_OK) != 0) GUARD_PATH(OP_MKDIR, at, path, 0); return real(at, path, mode); }

/* ---- the wall clock ---- */

int clock_gettime(clockid_t clock, struct timespec *time) {
  REAL(clock_gettime);
  int result = real(clock, time);
  if (result == 0 && control && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    int64_t offset = atomic_load_explicit(&control->clock_offset_ms, memory_order_relaxed);
    if (offset) {
      int64_t ns = (int64_t)time->tv_nsec + (offset % 1000) * 1000000;
      time->tv_sec += offset / 1000;
      if (ns < 0) { ns += 1000000000; time->tv_sec -= 1; }
      if (ns >= 1000000000) { ns -= 1000000000; time->tv_sec += 1; }
      time->tv_nsec = ns;
    }
  }
  return result;
}

int gettimeofday(struct timeval *time, void *zone) {
  (void)zone;
  struct timespec now;
  int result = clock_gettime(CLOCK_REALTIME, &now);
  if (result == 0) { time->tv_sec = now.tv_sec; time->tv_usec = now.tv_nsec / 1000; }
  return result;
}
