#include "stats/export/stack_sampler.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/log.h>

#include "common/above_standard.h"
#include "common/array.h"
#include "stats/export/trace_path.h"
#include "stats/schema/database_path.h"

enum { SAMPLES_PER_SECOND = 99, MAX_FRAMES = 62, OWN_FRAMES = 2, RING = 2048, SCANS_PER_SECOND = 10 };

/* A stack, from the inside; where it is full it belongs to the sampler's thread, else to the handler that makes it busy. */
typedef struct stack_sample {
    enum { SAMPLE_FREE, SAMPLE_BUSY, SAMPLE_FULL } _Atomic state;
    int num_frames;
    uint64_t count; /* of the same stack in this second */
    char thread[16];
    void *frames[MAX_FRAMES];
} stack_sample;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* guarded by lock */
static int num_users;
static pthread_t sampler_thread;

static atomic_bool is_ending;

/* any thread, in the handler */
static stack_sample ring[RING];
static _Atomic uint64_t num_taken, num_lost;

/* the sampler's thread, while it runs */
static FILE *out;
static struct {
    timer_t *timers;
    int *tids;
    size_t count;
} threads;
static struct {
    stack_sample *samples;
    size_t count;
} second;

static void take_stack(int signal)
{
    int saved = errno, is_free = SAMPLE_FREE;
    (void)signal;
    stack_sample *sample = &ring[atomic_fetch_add(&num_taken, 1) % RING];
    if (atomic_compare_exchange_strong((atomic_int *)&sample->state, &is_free, SAMPLE_BUSY)) {
        prctl(PR_GET_NAME, sample->thread);
        sample->num_frames = backtrace(sample->frames, MAX_FRAMES);
        atomic_store(&sample->state, SAMPLE_FULL);
    } else {
        atomic_fetch_add(&num_lost, 1);
    }
    errno = saved;
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

/* A timer of the thread's CPU time, see pthread_getcpuclockid(), which takes no thread's number. */
static void watch_thread(int tid)
{
    const struct itimerspec period = { .it_interval = { 0, WEIR_SECOND / SAMPLES_PER_SECOND },
                                       .it_value = { 0, WEIR_SECOND / SAMPLES_PER_SECOND } };
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
    event._sigev_un._tid = tid;
    for (size_t i = 0; i < threads.count; i++)
        if (threads.tids[i] == tid)
            return;
    timer_t *timers = weir__array_grow(threads.timers, threads.count, sizeof *timers);
    threads.timers = timers ? timers : threads.timers;
    int *tids = timers ? weir__array_grow(threads.tids, threads.count, sizeof *tids) : NULL;
    threads.tids = tids ? tids : threads.tids;
    if (!tids || timer_create((clockid_t)(~(unsigned)tid << 3 | 6), &event, &timers[threads.count]) != 0)
        return; /* it has ended, or the next scan tries again */
    timer_settime(timers[threads.count], 0, &period, NULL);
    tids[threads.count++] = tid;
}

static void find_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != gettid())
            watch_thread(atoi(entry->d_name));
    if (folder)
        closedir(folder);
}

/* ---- samples --------------------------------------------------------------------------------------------------- */

static void add_sample(const stack_sample *sample)
{
    for (size_t i = 0; i < second.count; i++) {
        stack_sample *one = &second.samples[i];
        if (one->num_frames == sample->num_frames && strcmp(one->thread, sample->thread) == 0 &&
            memcmp(one->frames, sample->frames, (size_t)sample->num_frames * sizeof *sample->frames) == 0) {
            one->count++;
            return;
        }
    }
    stack_sample *grown = weir__array_grow(second.samples, second.count, sizeof *grown);
    if (!grown)
        return;
    second.samples = grown;
    memcpy(&grown[second.count], sample, sizeof *sample);
    grown[second.count++].count = 1;
}

static void take_samples(void)
{
    for (stack_sample *sample = ring; sample < ring + RING; sample++)
        if (sample->state == SAMPLE_FULL) {
            add_sample(sample);
            atomic_store(&sample->state, SAMPLE_FREE);
        }
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

/* A program or library: its table of all functions, which stripped files do not have. */
typedef struct module {
    const void *base; /* where it is loaded */
    bool is_fixed;    /* symbols are addresses, not distances from the base */
    const ElfW(Sym) * symbols;
    size_t num_symbols;
    const char *names;
    size_t names_size;
} module;

static struct {
    module *all;
    size_t count;
} modules; /* the sampler's thread; they stay, as names do */

static void find_symbols(module *to, const char *file, size_t size)
{
    const ElfW(Ehdr) *head = (const void *)file;
    if (size < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_shoff > size ||
        head->e_shnum > (size - head->e_shoff) / sizeof(ElfW(Shdr)))
        return;
    const ElfW(Shdr) *sections = (const void *)(file + head->e_shoff);
    to->is_fixed = head->e_type == ET_EXEC;
    for (size_t i = 0; i < head->e_shnum; i++) {
        const ElfW(Shdr) *table = &sections[i],
                         *text = &sections[table->sh_link < head->e_shnum ? table->sh_link : 0];
        if (table->sh_type != SHT_SYMTAB || table->sh_offset > size || table->sh_size > size - table->sh_offset ||
            text->sh_offset > size || !text->sh_size || text->sh_size > size - text->sh_offset)
            continue;
        to->symbols = (const void *)(file + table->sh_offset);
        to->num_symbols = table->sh_size / sizeof *to->symbols;
        to->names = file + text->sh_offset;
        to->names_size = text->sh_size;
    }
}

static const module *open_module(const Dl_info *info)
{
    for (size_t i = 0; i < modules.count; i++)
        if (modules.all[i].base == info->dli_fbase)
            return &modules.all[i];
    module *grown = weir__array_grow(modules.all, modules.count, sizeof *grown);
    if (!grown)
        return NULL;
    modules.all = grown;
    module *made = &grown[modules.count++];
    *made = (module){ .base = info->dli_fbase };
    struct stat facts;
    int fd = open(info->dli_fname, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &facts) == 0 && facts.st_size > 0) {
        void *file = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file != MAP_FAILED)
            find_symbols(made, file, (size_t)facts.st_size);
    }
    if (fd >= 0)
        close(fd);
    return made;
}

/* NULL = not known. */
static const char *find_function(const Dl_info *info, const char *at)
{
    const module *in = open_module(info);
    uintptr_t place = (uintptr_t)at - (in && in->is_fixed ? 0 : (uintptr_t)info->dli_fbase);
    for (size_t i = 0; in && i < in->num_symbols; i++) {
        const ElfW(Sym) *symbol = &in->symbols[i];
        if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && place - symbol->st_value < symbol->st_size &&
            symbol->st_name < in->names_size)
            return in->names + symbol->st_name;
    }
    return NULL;
}

/* Finding a name takes long, so the latest ones are kept. */
static struct {
    const void *address;
    char *name;
} names[4096];

/* The function, or, where its file does not name it, the file. */
static char *name_frame(const void *address)
{
    Dl_info info;
    char *name = NULL;
    const ElfW(Sym) *symbol = NULL;
    const char *at = (const char *)address - 1; /* in the call, not behind it */
    if (!dladdr1(at, &info, (void **)(uintptr_t)&symbol, RTLD_DL_SYMENT) || !info.dli_fname)
        return NULL;
    const char *slash = strrchr(info.dli_fname, '/'), *file = slash ? slash + 1 : info.dli_fname;
    const char *function = symbol && at < (const char *)info.dli_saddr + symbol->st_size ? info.dli_sname : NULL;
    if (!function)
        function = find_function(&info, at);
    return asprintf(&name, function ? "%s" : "[%s]", function ? function : file) < 0 ? NULL : name;
}

static void put_frame(const void *address)
{
    size_t at = ((uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15) >> 52) % (sizeof names / sizeof names[0]);
    if (names[at].address != address) {
        free(names[at].name);
        names[at].address = address;
        names[at].name = name_frame(address);
    }
    fprintf(out, ";%s", names[at].name ? names[at].name : "?");
}

/* ---- the thread ------------------------------------------------------------------------------------------------- */

static void write_second(int64_t number)
{
    for (size_t at = 0; at < second.count; at++) {
        const stack_sample *one = &second.samples[at];
        fprintf(out, "%06" PRId64 ";%s", number, one->thread);
        for (int i = one->num_frames - 1; i >= OWN_FRAMES; i--)
            put_frame(one->frames[i]);
        fprintf(out, " %" PRIu64 "\n", one->count);
    }
    second.count = 0;
    fflush(out);
}

static void *sample_stacks(void *none)
{
    const struct timespec pause = { .tv_nsec = WEIR_SECOND / SCANS_PER_SECOND };
    int64_t start_ns = weir_clock_ns(), number = 0;
    pthread_setname_np(pthread_self(), "weir-stacks");
    while (!atomic_load(&is_ending)) {
        find_threads();
        nanosleep(&pause, NULL);
        take_samples();
        int64_t now = (weir_clock_ns() - start_ns) / WEIR_SECOND;
        if (now > number)
            write_second(number);
        number = now;
    }
    for (size_t i = 0; i < threads.count; i++)
        timer_delete(threads.timers[i]);
    take_samples();
    write_second(number);
    return none;
}

/* ---- beginning and end ----------------------------------------------------------------------------------------- */

static int create_stacks(const char *path)
{
    return weir__above_standard(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
}

static int open_output(const char *path, weir_error *error)
{
    char *wanted = strdup(path);
    int fd = wanted ? create_stacks(wanted) : -1;
    for (unsigned number = 2; wanted && fd < 0 && errno == EEXIST; number++) {
        free(wanted);
        wanted = weir__trace_numbered(path, number);
        fd = wanted ? create_stacks(wanted) : -1;
    }
    free(wanted);
    out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!out)
        return weir_error_set(error, WEIR_EIO, -errno, "cannot write stacks %s: %s",
                              weir__path_for_message(path).text, strerror(errno));
    fprintf(out, "# weir stacks: second;thread;functions samples (%d a second of CPU time)\n", SAMPLES_PER_SECOND);
    return WEIR_OK;
}

static int begin_sampling(const char *path, weir_error *error)
{
    struct sigaction before, handler = { .sa_handler = take_stack, .sa_flags = SA_RESTART };
    void *frame;
    if (sigaction(SIGPROF, NULL, &before) != 0 || (before.sa_flags & SA_SIGINFO) || before.sa_handler != SIG_DFL)
        return weir_error_set(error, WEIR_EBUSY, 0, "the program uses the signal SIGPROF: no stacks are sampled");
    backtrace(&frame, 1); /* loads what it needs, which a handler must not */
    int status = open_output(path, error);
    if (status != WEIR_OK)
        return status;
    atomic_store(&is_ending, false);
    sigaction(SIGPROF, &handler, NULL);
    sigset_t all, mask;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask); /* signals are for threads of the program */
    int code = pthread_create(&sampler_thread, NULL, sample_stacks, NULL);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if (code == 0)
        return WEIR_OK;
    sigaction(SIGPROF, &before, NULL);
    fclose(out);
    return weir_error_set(error, WEIR_ESYSTEM, code, "cannot start the thread that samples stacks: %s",
                          strerror(code));
}

int weir__stack_sampler_start(const char *path, weir_error *error)
{
    pthread_mutex_lock(&lock);
    int status = num_users ? WEIR_OK : begin_sampling(path, error);
    num_users += status == WEIR_OK;
    pthread_mutex_unlock(&lock);
    return status;
}

void weir__stack_sampler_stop(void)
{
    pthread_mutex_lock(&lock);
    if (--num_users == 0) {
        atomic_store(&is_ending, true);
        pthread_join(sampler_thread, NULL);
        signal(SIGPROF, SIG_IGN); /* forgets those on their way, as the default would end the process */
        signal(SIGPROF, SIG_DFL);
        if (atomic_load(&num_lost))
            weir_log(WEIR_LOG_WARNING, "WEIR_STACKS: %" PRIu64 " samples were lost", atomic_exchange(&num_lost, 0));
        if (fclose(out) != 0)
            weir_log(WEIR_LOG_WARNING, "WEIR_STACKS: the file is not complete: %s", strerror(errno));
        free(threads.timers);
        free(threads.tids);
        free(second.samples);
        memset(&threads, 0, sizeof threads);
        memset(&second, 0, sizeof second);
    }
    pthread_mutex_unlock(&lock);
}
