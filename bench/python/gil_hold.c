/*
 * How long threads hold the GIL, for gil_hold.py, which compiles and loads this file. The extensions of weir reach
 * Python's functions through a table of addresses (their GOT). weir_gil_watch() puts functions of this file there,
 * which read the clocks and go on to Python's. So an unchanged extension is measured.
 *
 * The thread that calls weir_gil_begin() and weir_gil_end() holds the GIL at both. Between them it holds it, except
 * from the call of PyEval_SaveThread to the return of PyEval_RestoreThread.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined __x86_64__
#define IS_ADDRESS(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#elif defined __aarch64__
#define IS_ADDRESS(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#else
#error "the relocations of this processor are not known here"
#endif

typedef struct {
    int64_t wall_ns, cpu_ns; /* with the GIL, since weir_gil_begin() */
    int64_t longest_ns;      /* of these, the longest without a break, by the wall clock */
    int64_t releases;
} held_time;

static _Thread_local held_time held;
static _Thread_local int64_t wall_from, cpu_from;
static _Thread_local int is_watched;

static void *(*save_thread)(void);
static void (*restore_thread)(void *);

static int64_t clock_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void begin_hold(void)
{
    cpu_from = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    wall_from = clock_ns(CLOCK_MONOTONIC);
}

static void end_hold(void)
{
    int64_t length_ns = clock_ns(CLOCK_MONOTONIC) - wall_from;
    held.wall_ns += length_ns;
    held.cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_from;
    if (held.longest_ns < length_ns)
        held.longest_ns = length_ns;
}

static void *watched_save(void)
{
    if (is_watched) {
        held.releases++;
        end_hold();
    }
    return save_thread();
}

static void watched_restore(void *state)
{
    restore_thread(state);
    if (is_watched)
        begin_hold();
}

static void *instead_of(const char *name, void *address)
{
    if (strcmp(name, "PyEval_SaveThread") == 0)
        return save_thread = (void *(*)(void))address, (void *)watched_save;
    if (strcmp(name, "PyEval_RestoreThread") == 0)
        return restore_thread = (void (*)(void *))address, (void *)watched_restore;
    return NULL;
}

static int set_address(void **at, void *address)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)at & ~(page - 1);
    if (mprotect((void *)start, page, PROT_READ | PROT_WRITE))
        return 0;
    *at = address;
    return 1;
}

static int watch_table(ElfW(Addr) base, const ElfW(Rela) * table, size_t bytes, const ElfW(Sym) * symbols,
                       const char *names, void *(*resolve)(const char *))
{
    int num_found = 0;
    for (size_t i = 0; i < bytes / sizeof *table; i++) {
        if (!IS_ADDRESS(ELF64_R_TYPE(table[i].r_info)))
            continue;
        const char *name = names + symbols[ELF64_R_SYM(table[i].r_info)].st_name;
        void *ours = strncmp(name, "Py", 2) == 0 ? instead_of(name, resolve(name)) : NULL;
        if (ours)
            num_found += set_address((void **)(base + table[i].r_offset), ours);
    }
    return num_found;
}

typedef struct {
    void *(*resolve)(const char *);
    int num_found;
} search;

static int watch_object(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    search *search = data;
    const char *file = strrchr(info->dlpi_name, '/');
    if (!file || (strncmp(file, "/_core.", 7) != 0 && strncmp(file, "/_media.", 8) != 0))
        return 0;
    const ElfW(Rela) *table = NULL, *calls = NULL;
    size_t bytes = 0, call_bytes = 0;
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        for (const ElfW(Dyn) *at = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr); at->d_tag != DT_NULL;
             at++) {
            if (at->d_tag == DT_RELA)
                table = (const void *)at->d_un.d_ptr;
            else if (at->d_tag == DT_RELASZ)
                bytes = at->d_un.d_val;
            else if (at->d_tag == DT_JMPREL)
                calls = (const void *)at->d_un.d_ptr;
            else if (at->d_tag == DT_PLTRELSZ)
                call_bytes = at->d_un.d_val;
            else if (at->d_tag == DT_SYMTAB)
                symbols = (const void *)at->d_un.d_ptr;
            else if (at->d_tag == DT_STRTAB)
                names = (const void *)at->d_un.d_ptr;
        }
    }
    if (symbols && names) {
        search->num_found += watch_table(info->dlpi_addr, table, table ? bytes : 0, symbols, names, search->resolve);
        search->num_found +=
            watch_table(info->dlpi_addr, calls, calls ? call_bytes : 0, symbols, names, search->resolve);
    }
    return 0;
}

/* How many addresses were replaced. `resolve` gives the address of a function of Python's. */
int weir_gil_watch(void *(*resolve)(const char *))
{
    search search = { .resolve = resolve };
    dl_iterate_phdr(watch_object, &search);
    return search.num_found;
}

void weir_gil_begin(void)
{
    held = (held_time){ 0 };
    is_watched = 1;
    begin_hold();
}

void weir_gil_end(held_time *found)
{
    end_hold();
    is_watched = 0;
    *found = held;
}
