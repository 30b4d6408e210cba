#include "stats/record/stack_names.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"

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
} modules; /* one thread at a time; they stay, as the files do */

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

/* The name without what compilers add to a part or a variant of a function. */
static int source_length(const char *name)
{
    static const char *const variants[] = { ".isra.", ".constprop.", ".part.", ".cold", ".lto_priv.", ".llvm." };
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        const char *variant = strstr(name, variants[i]);
        if (variant && variant > name && (size_t)(variant - name) < length)
            length = (size_t)(variant - name);
    }
    return (int)length;
}

char *weir__stack_name(const void *return_address)
{
    Dl_info info;
    char *name = NULL;
    const ElfW(Sym) *symbol = NULL;
    const char *at = (const char *)return_address - 1; /* in the call, not behind it */
    if (!dladdr1(at, &info, (void **)(uintptr_t)&symbol, RTLD_DL_SYMENT) || !info.dli_fname)
        return NULL;
    const char *slash = strrchr(info.dli_fname, '/'), *file = slash ? slash + 1 : info.dli_fname;
    const char *function = symbol && at < (const char *)info.dli_saddr + symbol->st_size ? info.dli_sname : NULL;
    if (!function)
        function = find_function(&info, at);
    int length =
        function ? asprintf(&name, "%.*s", source_length(function), function) : asprintf(&name, "[%s]", file);
    return length < 0 ? NULL : name;
}
