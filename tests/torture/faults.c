/*
 * A library for LD_PRELOAD: one kind of call fails, once or from then on. tests/torture/run uses it on every program.
 *
 *     WEIR_FAULT_KIND=alloc|open|read|write|readdir|thread   which calls fail (default: none)
 *     WEIR_FAULT_AT=N       the call of that kind that fails, from 1 (default 0 = none)
 *     WEIR_FAULT_ON=1       all later ones fail, too
 *     WEIR_FAULT_OURS=1     only calls from the program itself and from libweir count; for allocations
 *     WEIR_FAULT_REPORT=F   "hit" is added to file F when a call fails, "calls KIND N OURS" for each kind when the process ends
 *     WEIR_FAULT_PROGRAM=P  only in the program P, which the one that is run starts
 *     WEIR_FAULT_TRACE=1    the callers of each failing call go to the report, or to stderr
 *
 * Reads and writes fail on regular files only, as disks do; stderr is spared, since a message has to reach it. The calls
 * that stdio makes inside the C library are not seen: limits and full disks (see tests/torture/run) are for those.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHOWN  __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

typedef enum fault_kind {
    KIND_NONE,
    KIND_ALLOC,
    KIND_OPEN,
    KIND_READ,
    KIND_WRITE,
    KIND_READDIR,
    KIND_THREAD
} fault_kind;

static const char *const kind_names[] = { "none", "alloc", "open", "read", "write", "readdir", "thread" };
enum { NUM_KINDS = sizeof kind_names / sizeof *kind_names, MAX_RANGES = 32, MAX_FRAMES = 24 };

/* immutable after set_up(), which runs before main() */
static fault_kind kind;
static long failing_call;
static bool stays, only_ours, traced;
static const char *report_path;
static struct {
    uintptr_t start, end;
} ranges[MAX_RANGES]; /* the code of the program and of libweir */
static size_t num_ranges;

static atomic_long num_calls[NUM_KINDS], num_ours[NUM_KINDS];
static _Thread_local bool inside; /* a call of our own */

/* -- choosing */

static int open_report(void)
{
    return report_path ? (int)syscall(SYS_openat, AT_FDCWD, report_path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
}

static void report(const char *text)
{
    int fd = open_report();
    if (fd < 0)
        return;
    syscall(SYS_write, fd, text, strlen(text));
    syscall(SYS_close, fd);
}

static bool is_ours(const void *caller)
{
    for (size_t i = 0; i < num_ranges; i++)
        if ((uintptr_t)caller >= ranges[i].start && (uintptr_t)caller < ranges[i].end)
            return true;
    return false;
}

static void trace(void)
{
    void *frames[MAX_FRAMES];
    inside = true;
    int num_frames = backtrace(frames, MAX_FRAMES), fd = open_report();
    backtrace_symbols_fd(frames, num_frames, fd < 0 ? STDERR_FILENO : fd);
    if (fd >= 0)
        syscall(SYS_close, fd);
    inside = false;
}

static bool fails(fault_kind of, const void *caller)
{
    if (inside)
        return false;
    bool ours = is_ours(caller);
    long call = atomic_fetch_add(&num_calls[of], 1) + 1;
    long call_of_ours = ours ? atomic_fetch_add(&num_ours[of], 1) + 1 : 0;
    if (only_ours)
        call = call_of_ours;
    if (of != kind || failing_call == 0 || call == 0 || call < failing_call || (call > failing_call && !stays))
        return false;
    int error = errno;
    if (call == failing_call)
        report("hit\n");
    if (traced)
        trace();
    errno = error;
    return true;
}

static bool is_file(int fd)
{
    struct stat info;
    return fd != STDERR_FILENO && fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

static int add_ranges(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    if (info->dlpi_name[0] && !strstr(info->dlpi_name, "libweir"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum && num_ranges < MAX_RANGES; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
            continue;
        ranges[num_ranges].start = info->dlpi_addr + header->p_vaddr;
        ranges[num_ranges++].end = info->dlpi_addr + header->p_vaddr + header->p_memsz;
    }
    return 0;
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && strcmp(value, "1") == 0;
}

__attribute__((constructor)) static void set_up(void)
{
    const char *name = getenv("WEIR_FAULT_KIND"), *at = getenv("WEIR_FAULT_AT");
    const char *program = getenv("WEIR_FAULT_PROGRAM");
    if (program && strcmp(program, program_invocation_short_name) != 0)
        return;
    stays = is_set("WEIR_FAULT_ON");
    only_ours = is_set("WEIR_FAULT_OURS");
    traced = is_set("WEIR_FAULT_TRACE");
    report_path = getenv("WEIR_FAULT_REPORT");
    failing_call = at ? atol(at) : 0;
    dl_iterate_phdr(add_ranges, NULL);
    unsetenv("LD_PRELOAD"); /* programs that it starts run as usual */
    if (traced)
        backtrace((void *[1]){ NULL }, 1); /* loads what it needs */
    for (int i = 0; i < NUM_KINDS; i++)
        if (name && strcmp(name, kind_names[i]) == 0)
            kind = (fault_kind)i;
}

__attribute__((destructor)) static void tell_calls(void)
{
    char text[64];
    kind = KIND_NONE; /* what ends after us finds everything in order */
    for (int i = 1; i < NUM_KINDS; i++) {
        snprintf(text, sizeof text, "calls %s %ld %ld\n", kind_names[i], atomic_load(&num_calls[i]),
                 atomic_load(&num_ours[i]));
        report(text);
    }
}

/* -- allocations; the C library's own names for them need no dlsym(), which allocates */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

SHOWN void *malloc(size_t size)
{
    return fails(KIND_ALLOC, CALLER) ? no_memory() : __libc_malloc(size);
}

SHOWN void *calloc(size_t count, size_t size)
{
    return fails(KIND_ALLOC, CALLER) ? no_memory() : __libc_calloc(count, size);
}

SHOWN void *realloc(void *block, size_t size)
{
    return fails(KIND_ALLOC, CALLER) ? no_memory() : __libc_realloc(block, size);
}

SHOWN void *memalign(size_t alignment, size_t size)
{
    return fails(KIND_ALLOC, CALLER) ? no_memory() : __libc_memalign(alignment, size);
}

SHOWN void *aligned_alloc(size_t alignment, size_t size)
{
    return fails(KIND_ALLOC, CALLER) ? no_memory() : __libc_memalign(alignment, size);
}

SHOWN int posix_memalign(void **block, size_t alignment, size_t size)
{
    void *made = fails(KIND_ALLOC, CALLER) ? NULL : __libc_memalign(alignment, size);
    if (!made)
        return ENOMEM;
    *block = made;
    return 0;
}

SHOWN char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = fails(KIND_ALLOC, CALLER) ? no_memory() : __libc_malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

static int print(char **text, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    *text = length < 0 ? NULL : __libc_malloc((size_t)length + 1);
    return *text ? vsnprintf(*text, (size_t)length + 1, format, arguments) : -1;
}

#define FORWARD(text, format) \
    va_list arguments; \
    if (fails(KIND_ALLOC, CALLER)) { \
        no_memory(); \
        return -1; \
    } \
    va_start(arguments, format); \
    int length = print(text, format, arguments); \
    va_end(arguments); \
    return length

extern int __asprintf_chk(char **text, int flag, const char *format, ...);
extern int __vasprintf_chk(char **text, int flag, const char *format, va_list arguments);

SHOWN int asprintf(char **text, const char *format, ...)
{
    FORWARD(text, format);
}

SHOWN int __asprintf_chk(char **text, int flag, const char *format, ...)
{
    (void)flag;
    FORWARD(text, format);
}

SHOWN int vasprintf(char **text, const char *format, va_list arguments)
{
    return fails(KIND_ALLOC, CALLER) ? (no_memory(), -1) : print(text, format, arguments);
}

SHOWN int __vasprintf_chk(char **text, int flag, const char *format, va_list arguments)
{
    (void)flag;
    return fails(KIND_ALLOC, CALLER) ? (no_memory(), -1) : print(text, format, arguments);
}

/* -- files */

/* Sets *function, a pointer to a function, to the C library's. */
static void find(const char *name, void *function)
{
    bool was_inside = inside;
    inside = true;
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
    inside = was_inside;
}

static int open_file(const void *caller, int folder, const char *path, int flags, mode_t mode)
{
    if (fails(KIND_OPEN, caller)) {
        errno = EMFILE;
        return -1;
    }
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define OPEN(folder, path, flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { \
        va_list arguments; \
        va_start(arguments, flags); \
        mode = va_arg(arguments, mode_t); \
        va_end(arguments); \
    } \
    return open_file(CALLER, folder, path, flags, mode)

extern int __open_2(const char *path, int flags);
extern int __open64_2(const char *path, int flags);

SHOWN int open(const char *path, int flags, ...)
{
    OPEN(AT_FDCWD, path, flags);
}

SHOWN int open64(const char *path, int flags, ...)
{
    OPEN(AT_FDCWD, path, flags);
}

SHOWN int openat(int folder, const char *path, int flags, ...)
{
    OPEN(folder, path, flags);
}

SHOWN int openat64(int folder, const char *path, int flags, ...)
{
    OPEN(folder, path, flags);
}

SHOWN int __open_2(const char *path, int flags)
{
    return open_file(CALLER, AT_FDCWD, path, flags, 0);
}

SHOWN int __open64_2(const char *path, int flags)
{
    return open_file(CALLER, AT_FDCWD, path, flags, 0);
}

static void *open_stream(const void *caller, const char *function, const char *path, const char *mode)
{
    void *(*real)(const char *, const char *);
    find(function, &real);
    if (!fails(KIND_OPEN, caller))
        return real(path, mode);
    errno = EMFILE;
    return NULL;
}

SHOWN FILE *fopen(const char *path, const char *mode)
{
    return open_stream(CALLER, "fopen", path, mode);
}

SHOWN FILE *fopen64(const char *path, const char *mode)
{
    return open_stream(CALLER, "fopen64", path, mode);
}

SHOWN DIR *opendir(const char *path)
{
    DIR *(*real)(const char *);
    find("opendir", &real);
    if (!fails(KIND_OPEN, CALLER))
        return real(path);
    errno = EMFILE;
    return NULL;
}

static ssize_t fail_io(int error)
{
    errno = error;
    return -1;
}

static bool io_fails(fault_kind of, const void *caller, int fd)
{
    return is_file(fd) && fails(of, caller);
}

extern ssize_t __read_chk(int fd, void *to, size_t size, size_t room);

SHOWN ssize_t read(int fd, void *to, size_t size)
{
    return io_fails(KIND_READ, CALLER, fd) ? fail_io(EIO) : syscall(SYS_read, fd, to, size);
}

SHOWN ssize_t __read_chk(int fd, void *to, size_t size, size_t room)
{
    return io_fails(KIND_READ, CALLER, fd) ? fail_io(EIO) : syscall(SYS_read, fd, to, size < room ? size : room);
}

SHOWN ssize_t pread(int fd, void *to, size_t size, off_t at)
{
    return io_fails(KIND_READ, CALLER, fd) ? fail_io(EIO) : syscall(SYS_pread64, fd, to, size, at);
}

SHOWN ssize_t pread64(int fd, void *to, size_t size, off64_t at)
{
    return io_fails(KIND_READ, CALLER, fd) ? fail_io(EIO) : syscall(SYS_pread64, fd, to, size, at);
}

SHOWN ssize_t write(int fd, const void *from, size_t size)
{
    return io_fails(KIND_WRITE, CALLER, fd) ? fail_io(ENOSPC) : syscall(SYS_write, fd, from, size);
}

SHOWN ssize_t pwrite(int fd, const void *from, size_t size, off_t at)
{
    return io_fails(KIND_WRITE, CALLER, fd) ? fail_io(ENOSPC) : syscall(SYS_pwrite64, fd, from, size, at);
}

SHOWN ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at)
{
    return io_fails(KIND_WRITE, CALLER, fd) ? fail_io(ENOSPC) : syscall(SYS_pwrite64, fd, from, size, at);
}

SHOWN struct dirent *readdir(DIR *folder)
{
    struct dirent *(*real)(DIR *);
    find("readdir", &real);
    if (!fails(KIND_READDIR, CALLER))
        return real(folder);
    errno = EIO;
    return NULL;
}

SHOWN struct dirent64 *readdir64(DIR *folder)
{
    struct dirent64 *(*real)(DIR *);
    find("readdir64", &real);
    if (!fails(KIND_READDIR, CALLER))
        return real(folder);
    errno = EIO;
    return NULL;
}

/* -- threads */

SHOWN int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    find("pthread_create", &real);
    return fails(KIND_THREAD, CALLER) ? EAGAIN : real(thread, attributes, run, argument);
}
