#include "stages/isolate/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* Those of root: to change its limits and the network. The process cannot get them again. */
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

#if defined(__x86_64__)
#define SANDBOX_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SANDBOX_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifndef SANDBOX_ARCHITECTURE
bool weir__sandbox_enter(sandbox_kind kind)
{
    errno = ENOTSUP;
    return kind == SANDBOX_NONE;
}
#else

#define CALL_ALLOW   SECCOMP_RET_ALLOW
#define CALL_KILL    SECCOMP_RET_KILL_PROCESS
#define CALL_REFUSE  (SECCOMP_RET_ERRNO | EACCES)
#define CALL_UNKNOWN (SECCOMP_RET_ERRNO | ENOSYS)

/* What becomes of calls; they need no look at their arguments. */
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
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_sendto,
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
};
static const int refused_calls[] = {
    SYS_openat,  SYS_newfstatat, SYS_statx, SYS_faccessat, SYS_readlinkat, SYS_ioctl,  SYS_getcwd, SYS_unlinkat,
#ifdef SYS_openat2
    SYS_openat2, SYS_faccessat2,
#endif
#ifdef SYS_open
    SYS_open,    SYS_stat,       SYS_lstat, SYS_access,    SYS_readlink,   SYS_unlink, SYS_creat,
#endif
};
/* These stand before the others. */
static const int url_calls[] = {
    SYS_connect,    SYS_bind,        SYS_sendto,      SYS_recvfrom, SYS_sendmmsg,   SYS_recvmmsg, SYS_getsockopt,
    SYS_setsockopt, SYS_getsockname, SYS_getpeername, SYS_shutdown, SYS_newfstatat, SYS_statx,    SYS_faccessat,
    SYS_readlinkat, SYS_uname,       SYS_getuid,      SYS_geteuid,  SYS_getgid,     SYS_getegid,
#ifdef SYS_stat
    SYS_stat,       SYS_lstat,       SYS_access,      SYS_readlink, SYS_select,
#endif
    SYS_pselect6,
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

enum { MAX_STEPS = 400 };

typedef struct call_filter {
    struct sock_filter steps[MAX_STEPS];
    unsigned short num_steps;
} call_filter;

static void add_step(call_filter *filter, struct sock_filter step)
{
    filter->steps[filter->num_steps++] = step;
}

static void add_calls(call_filter *filter, const int *calls, size_t num_calls, uint32_t result)
{
    for (size_t i = 0; i < num_calls; i++) {
        add_step(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1));
        add_step(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result));
    }
}

static void add_rule(call_filter *filter, const call_rule *rule)
{
    uint32_t lower_half = (uint32_t)(offsetof(struct seccomp_data, args) + rule->argument * sizeof(uint64_t));
    uint8_t after = (uint8_t)(2 * rule->num_values + 3);
    add_step(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)rule->call, 0, after));
    add_step(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, lower_half));
    add_step(filter, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, rule->mask));
    for (unsigned i = 0; i < rule->num_values; i++) {
        add_step(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule->values[i], 0, 1));
        add_step(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, CALL_ALLOW));
    }
    add_step(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, rule->otherwise));
}

static void add_rules(call_filter *filter, sandbox_kind kind)
{
    const uint32_t own = (uint32_t)getpid(), any = UINT32_MAX;
    const uint32_t written = O_ACCMODE | O_CREAT | O_TRUNC | O_TMPFILE | O_PATH;
    const call_rule rules[] = {
        /* a thread; the C library tries clone3() first, whose flags a filter cannot see: it is unknown */
        { SYS_clone, 0, CLONE_THREAD | CLONE_VM, 1, { CLONE_THREAD | CLONE_VM }, CALL_KILL },
        { SYS_kill, 0, any, 1, { own }, CALL_KILL },
        { SYS_tgkill, 0, any, 1, { own }, CALL_KILL },
        { SYS_prlimit64, 0, any, 2, { 0, own }, CALL_KILL },
        { SYS_prctl, 0, any, 3, { PR_SET_NAME, PR_GET_NO_NEW_PRIVS, 0x53564d41 /* name of memory */ }, CALL_REFUSE },
        { SYS_fcntl, 1, any, 6, { F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_ADD_SEALS }, CALL_REFUSE },
        { SYS_socket, 0, any, 3, { AF_INET, AF_INET6, AF_NETLINK }, CALL_REFUSE },
        { SYS_ioctl, 1, any, 2, { FIONREAD, FIONBIO }, CALL_REFUSE },
        { SYS_openat, 2, written, 1, { O_RDONLY }, CALL_REFUSE },
    };
    enum { NUM_RULES = sizeof rules / sizeof rules[0], NUM_URL_RULES = 3 };
    for (size_t i = 0; i < (kind == SANDBOX_URLS ? (size_t)NUM_RULES : (size_t)NUM_RULES - NUM_URL_RULES); i++)
        add_rule(filter, &rules[i]);
}

#define ADD_CALLS(filter, calls, result) add_calls(filter, calls, sizeof(calls) / sizeof *(calls), result)

bool weir__sandbox_enter(sandbox_kind kind)
{
    call_filter filter = { .num_steps = 0 };
    if (kind == SANDBOX_NONE)
        return true;
    add_step(&filter,
             (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, arch)));
    add_step(&filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SANDBOX_ARCHITECTURE, 1, 0));
    add_step(&filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, CALL_KILL));
    add_step(&filter,
             (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, nr)));
    ADD_CALLS(&filter, allowed_calls, CALL_ALLOW);
    add_rules(&filter, kind);
    if (kind == SANDBOX_URLS)
        ADD_CALLS(&filter, url_calls, CALL_ALLOW);
    ADD_CALLS(&filter, killed_calls, CALL_KILL);
    ADD_CALLS(&filter, refused_calls, CALL_REFUSE);
    add_step(&filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, CALL_UNKNOWN));
    struct sock_fprog program = { .len = filter.num_steps, .filter = filter.steps };
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

#endif
