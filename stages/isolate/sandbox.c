#include "stages/isolate/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The calls below are those of these processors. */
#if defined(WEIR_HAVE_SECCOMP) && (defined(__x86_64__) || defined(__aarch64__))
#define HAS_WALL
#include <seccomp.h>
#endif

#if defined(__has_include)
#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#endif
#endif

/* -- the environment */

/* What the loader, sanitizers, the C library and weir read. A name that ends with '_' stands for all that begin so. */
static const char *const kept_variables[] = {
    "LD_", "WEIR_", "ASAN_", "LSAN_",  "TSAN_", "UBSAN_", "MALLOC_", "GLIBC_TUNABLES", "GCOV_", "LLVM_PROFILE_FILE",
    "LC_", "LANG",  "TZ",    "TMPDIR",
};
/* Proxies may have a password; they are needed for URLs only. */
static const char *const url_variables[] = { "http_proxy", "https_proxy", "no_proxy", "SSL_", "GNUTLS_" };

static bool is_among(const char *variable, const char *const *names, size_t num_names)
{
    for (size_t i = 0; i < num_names; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(variable, names[i], length) == 0 && (names[i][length - 1] == '_' || variable[length] == '='))
            return true;
    }
    return false;
}

char **weir__sandbox_environment(char *const *environment, sandbox_kind kind)
{
    size_t num_variables = 0, num_kept = 0;
    while (environment && environment[num_variables])
        num_variables++;
    char **kept = calloc(num_variables + 1, sizeof *kept);
    for (size_t i = 0; kept && i < num_variables; i++)
        if (kind == SANDBOX_NONE ||
            is_among(environment[i], kept_variables, sizeof kept_variables / sizeof kept_variables[0]) ||
            (kind == SANDBOX_URLS &&
             is_among(environment[i], url_variables, sizeof url_variables / sizeof url_variables[0])))
            kept[num_kept++] = environment[i];
    return kept;
}

/* -- capabilities, and files for URLs */

/* Drops the capabilities of root, such as those to change limits and the network. The process cannot get them
   again. */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
    (void)syscall(SYS_capset, &header, none);
}

#ifdef LANDLOCK_ACCESS_FS_READ_FILE
static void allow_reading(int rules, const char *path)
{
    struct landlock_path_beneath_attr rule = { .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE };
    int fd = path ? open(path, O_PATH | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    rule.parent_fd = fd;
    (void)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    close(fd);
}

static void limit_files(const char *ca_file)
{
    /* the resolver's settings, certificates, libraries; statm is read for the limit of memory */
    static const char *const paths[] = { "/etc/ssl",
                                         "/etc/pki",
                                         "/etc/ca-certificates",
                                         "/etc/gnutls",
                                         "/etc/resolv.conf",
                                         "/etc/hosts",
                                         "/etc/nsswitch.conf",
                                         "/etc/host.conf",
                                         "/etc/gai.conf",
                                         "/etc/services",
                                         "/etc/ld.so.cache",
                                         "/usr/lib",
                                         "/usr/share/ca-certificates",
                                         "/lib",
                                         "/lib64",
                                         "/sys/fs/cgroup",
                                         "/proc/self/statm" };
    struct landlock_ruleset_attr handled = { .handled_access_fs =
                                                 LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE };
    int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
    if (rules < 0) /* this kernel has no Landlock */
        return;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        allow_reading(rules, paths[i]);
    allow_reading(rules, ca_file);
    (void)syscall(SYS_landlock_restrict_self, rules, 0);
    close(rules);
}
#else
static void limit_files(const char *ca_file)
{
    (void)ca_file;
}
#endif

void weir__sandbox_limit_thread(sandbox_kind kind, const char *ca_file)
{
    if (kind == SANDBOX_NONE)
        return;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    drop_capabilities();
    if (kind == SANDBOX_URLS)
        limit_files(ca_file);
}

/* -- system calls */

#ifndef HAS_WALL
bool weir__sandbox_enter(sandbox_kind kind)
{
    errno = ENOTSUP;
    return kind == SANDBOX_NONE;
}

const char *weir__sandbox_complaint(int failure)
{
#ifdef WEIR_HAVE_SECCOMP
    return failure == ENOTSUP ? "weir has none for this processor" : strerror(failure);
#else
    return failure == ENOTSUP ? "weir was built without libseccomp" : strerror(failure);
#endif
}
#else

#define CALL_KILL    SCMP_ACT_KILL_PROCESS
#define CALL_REFUSE  SCMP_ACT_ERRNO(EACCES)
#define CALL_UNKNOWN SCMP_ACT_ERRNO(ENOSYS)

/* What becomes of calls, whatever their arguments are. A call is in one list only. */
static const int allowed_calls[] = {
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_preadv,
    SYS_lseek,
    SYS_close,
    SYS_fstat,
    SYS_mmap,
    SYS_mprotect,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_ppoll,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_memfd_create,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_getpid,
    SYS_gettid,
    SYS_getrusage,
    SYS_sysinfo,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_exit,
    SYS_exit_group,
    SYS_restart_syscall,
    SYS_getrandom,
    SYS_membarrier,
    SYS_getcpu,
    SYS_pipe2,
    SYS_eventfd2,
#ifdef SYS_poll
    SYS_poll,
    SYS_pipe,
    SYS_time,
#endif
};
static const int killed_calls[] = {
    SYS_socketpair, SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev,
#ifdef SYS_fork
    SYS_fork,       SYS_vfork,
#endif
};
static const int refused_calls[] = {
    SYS_getcwd,  SYS_unlinkat,
#ifdef SYS_openat2
    SYS_openat2, SYS_faccessat2,
#endif
#ifdef SYS_open
    SYS_open,    SYS_unlink,     SYS_creat,
#endif
};

/* URLs need these, too; for files they are killed, refused or unknown. */
static const int network_calls[] = { SYS_connect, SYS_bind, SYS_sendto };
static const int look_calls[] = {
    SYS_newfstatat, SYS_statx, SYS_faccessat, SYS_readlinkat,
#ifdef SYS_stat
    SYS_stat,       SYS_lstat, SYS_access,    SYS_readlink,
#endif
};
static const int url_calls[] = {
    SYS_recvfrom, SYS_sendmmsg, SYS_recvmmsg, SYS_getsockopt, SYS_setsockopt, SYS_getsockname, SYS_getpeername,
    SYS_shutdown, SYS_uname,    SYS_getuid,   SYS_geteuid,    SYS_getgid,     SYS_getegid,     SYS_pselect6,
#ifdef SYS_select
    SYS_select,
#endif
};

/* A call that depends on an argument, whose lower half is `argument` & `mask`; it is allowed for the listed values. */
typedef struct call_rule {
    int call;
    unsigned argument;
    uint32_t mask;
    unsigned num_values;
    uint32_t values[6];
    uint32_t otherwise;
} call_rule;

/* 0, or a negative errno value, as the functions of the library return it. */
static int add_calls(scmp_filter_ctx filter, uint32_t action, const int *calls, size_t num_calls)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < num_calls; i++)
        rc = seccomp_rule_add_exact_array(filter, action, calls[i], 0, NULL);
    return rc;
}

/* The kernel reads only the lower half of these arguments, so the upper one may be anything: hence the mask. The library puts
   the test for "at least 0", which is true for all, behind those for values. If it did not, all values would be refused. */
static int add_rule(scmp_filter_ctx filter, const call_rule *rule)
{
    struct scmp_arg_cmp all = { .arg = rule->argument, .op = SCMP_CMP_GE, .datum_a = 0 };
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < rule->num_values; i++) {
        struct scmp_arg_cmp one = {
            .arg = rule->argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = rule->mask, .datum_b = rule->values[i]
        };
        rc = seccomp_rule_add_exact_array(filter, SCMP_ACT_ALLOW, rule->call, 1, &one);
    }
    return rc == 0 ? seccomp_rule_add_exact_array(filter, rule->otherwise, rule->call, 1, &all) : rc;
}

static int add_rules(scmp_filter_ctx filter, const call_rule *rules, size_t num_rules)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < num_rules; i++)
        rc = add_rule(filter, &rules[i]);
    return rc;
}

#define LENGTH(array)                    (sizeof(array) / sizeof *(array))
#define ADD_CALLS(filter, action, calls) add_calls(filter, action, calls, LENGTH(calls))

static int add_common(scmp_filter_ctx filter)
{
    const uint32_t own = (uint32_t)getpid(), any = UINT32_MAX;
    const call_rule rules[] = {
        /* a thread; the C library tries clone3() first, whose flags a filter cannot see: it is unknown */
        { SYS_clone, 0, CLONE_THREAD | CLONE_VM, 1, { CLONE_THREAD | CLONE_VM }, CALL_KILL },
        { SYS_kill, 0, any, 1, { own }, CALL_KILL },
        { SYS_tgkill, 0, any, 1, { own }, CALL_KILL },
        { SYS_prlimit64, 0, any, 2, { 0, own }, CALL_KILL },
        { SYS_prctl, 0, any, 3, { PR_SET_NAME, PR_GET_NO_NEW_PRIVS, 0x53564d41 /* name of memory */ }, CALL_REFUSE },
        { SYS_fcntl, 1, any, 6, { F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_ADD_SEALS }, CALL_REFUSE },
    };
    int rc = ADD_CALLS(filter, SCMP_ACT_ALLOW, allowed_calls);
    rc = rc ? rc : add_rules(filter, rules, LENGTH(rules));
    rc = rc ? rc : ADD_CALLS(filter, CALL_KILL, killed_calls);
    return rc ? rc : ADD_CALLS(filter, CALL_REFUSE, refused_calls);
}

static int add_for_files(scmp_filter_ctx filter)
{
    int rc = ADD_CALLS(filter, CALL_KILL, network_calls);
    rc = rc ? rc : ADD_CALLS(filter, CALL_KILL, ((const int[]){ SYS_socket }));
    rc = rc ? rc : ADD_CALLS(filter, CALL_REFUSE, look_calls);
    return rc ? rc : ADD_CALLS(filter, CALL_REFUSE, ((const int[]){ SYS_ioctl, SYS_openat }));
}

static int add_for_urls(scmp_filter_ctx filter)
{
    const uint32_t any = UINT32_MAX, written = O_ACCMODE | O_CREAT | O_TRUNC | O_TMPFILE | O_PATH;
    const call_rule rules[] = {
        { SYS_socket, 0, any, 3, { AF_INET, AF_INET6, AF_NETLINK }, CALL_REFUSE },
        { SYS_ioctl, 1, any, 2, { FIONREAD, FIONBIO }, CALL_REFUSE },
        { SYS_openat, 2, written, 1, { O_RDONLY }, CALL_REFUSE },
    };
    int rc = ADD_CALLS(filter, SCMP_ACT_ALLOW, network_calls);
    rc = rc ? rc : ADD_CALLS(filter, SCMP_ACT_ALLOW, look_calls);
    rc = rc ? rc : ADD_CALLS(filter, SCMP_ACT_ALLOW, url_calls);
    return rc ? rc : add_rules(filter, rules, LENGTH(rules));
}

/* Calls of another architecture (i386, x32) have other numbers. With SYSRAWRC, loading fails with the kernel's error. */
static int fill_filter(scmp_filter_ctx filter, sandbox_kind kind)
{
    int rc = seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
    rc = rc ? rc : seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    rc = rc ? rc : seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, CALL_KILL);
    rc = rc ? rc : add_common(filter);
    return rc ? rc : kind == SANDBOX_URLS ? add_for_urls(filter) : add_for_files(filter);
}

/* What the kernel can do, in the library's levels (Linux 4.14); lower where seccomp() is refused. */
enum { KILLS_PROCESSES = 3 };

bool weir__sandbox_enter(sandbox_kind kind)
{
    if (kind == SANDBOX_NONE)
        return true;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return false;
    scmp_filter_ctx filter = seccomp_api_get() >= KILLS_PROCESSES ? seccomp_init(CALL_UNKNOWN) : NULL;
    if (!filter) {
        errno = seccomp_api_get() >= KILLS_PROCESSES ? ENOMEM : ENOTSUP;
        return false;
    }
    int rc = fill_filter(filter, kind);
    rc = rc ? rc : seccomp_load(filter);
    seccomp_release(filter);
    errno = -rc;
    return rc == 0;
}

const char *weir__sandbox_complaint(int failure)
{
    return failure == ENOTSUP ? "this kernel has none, or refuses it" : strerror(failure);
}

#endif
