/*
 * The walk: depth first, a folder's contents as soon as its name is met. What is held is a stack of the folders from
 * the root to here: each with its open listing or, where the order matters, with its sorted names.
 *
 * Invariants: `path` is the path of the innermost level, plus, during a step, the name of its entry. No two levels of
 * the stack are the same folder (device and inode), which is what ends link loops.
 */
#include "directory_walk.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef FNM_EXTMATCH /* only GNU has "*.@(jpg|png)" */
#define FNM_EXTMATCH 0
#endif

/* A folder's entry. */
typedef struct walk_entry {
    char *name;
    unsigned char type; /* DT_… */
} walk_entry;

/* A folder on the way from the root to here. */
typedef struct walk_level {
    DIR *listing; /* NULL when sorted */
    dev_t device;
    ino_t inode;
    size_t path_bytes; /* of the folder's own path */

    /* sorted only */
    walk_entry *entries;
    size_t num_entries;
    size_t next_entry;
} walk_level;

struct weir_walk {
    const weir_directory_config *config;
    weir_walk_unreadable *unreadable;
    void *self;

    walk_level *levels;
    size_t num_levels;
    size_t max_levels;
    bool started;
    uint64_t num_folders;

    char *path;
    size_t path_bytes; /* without the terminating 0 */
    size_t max_path_bytes;
};

static int open_folder(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int weir_walk_check(const weir_directory_config *config, weir_error *error)
{
    const char *root = config->root;
    if (!root || !*root)
        return weir_error_set(error, WEIR_EINVAL, 0, "no folder given: set root");

    int fd = open_folder(root);
    if (fd >= 0) {
        close(fd);
        return WEIR_OK;
    }
    int code = errno;
    switch (code) {
    case ENOENT: return weir_error_set(error, WEIR_ENOTFOUND, -code, "folder not found: %s", root);
    case ENOTDIR: return weir_error_set(error, WEIR_ENOTFOUND, -code, "not a folder: %s", root);
    case EACCES:
    case EPERM: return weir_error_set(error, WEIR_EACCESS, -code, "no permission to read folder: %s", root);
    default: return weir_error_set(error, WEIR_EIO, -code, "cannot read folder %s: %s", root, strerror(code));
    }
}

/* Makes `path` the first `keep_bytes` of itself and `name`. */
static int set_path(weir_walk *walk, size_t keep_bytes, const char *name)
{
    size_t name_bytes = strlen(name);
    size_t slash_bytes = keep_bytes > 0 && walk->path[keep_bytes - 1] != '/';
    size_t needed = keep_bytes + slash_bytes + name_bytes + 1;
    if (needed > walk->max_path_bytes) {
        char *grown = realloc(walk->path, needed * 2);
        if (!grown)
            return WEIR_ENOMEM;
        walk->path = grown;
        walk->max_path_bytes = needed * 2;
    }
    if (slash_bytes)
        walk->path[keep_bytes] = '/';
    memcpy(walk->path + keep_bytes + slash_bytes, name, name_bytes + 1);
    walk->path_bytes = needed - 1;
    return WEIR_OK;
}

weir_walk *weir_walk_open(const weir_directory_config *config, weir_walk_unreadable *unreadable, void *self)
{
    weir_walk *walk = calloc(1, sizeof *walk);
    if (!walk)
        return NULL;
    walk->config = config;
    walk->unreadable = unreadable;
    walk->self = self;
    if (set_path(walk, 0, config->root) != WEIR_OK) {
        free(walk);
        return NULL;
    }
    while (walk->path_bytes > 1 && walk->path[walk->path_bytes - 1] == '/')
        walk->path[--walk->path_bytes] = '\0';
    return walk;
}

static void report_unreadable(weir_walk *walk, int errno_code)
{
    if (walk->unreadable)
        walk->unreadable(walk->self, walk->path, errno_code);
}

static bool is_on_the_stack(const weir_walk *walk, const struct stat *folder)
{
    for (size_t i = 0; i < walk->num_levels; i++) {
        if (walk->levels[i].device == folder->st_dev && walk->levels[i].inode == folder->st_ino)
            return true;
    }
    return false;
}

/* Room for one more level. */
static walk_level *push_level(weir_walk *walk)
{
    if (walk->num_levels == walk->max_levels) {
        size_t max_levels = walk->max_levels ? walk->max_levels * 2 : 16;
        walk_level *grown = realloc(walk->levels, max_levels * sizeof *grown);
        if (!grown)
            return NULL;
        walk->levels = grown;
        walk->max_levels = max_levels;
    }
    walk_level *level = &walk->levels[walk->num_levels++];
    *level = (walk_level){ .path_bytes = walk->path_bytes };
    return level;
}

static void pop_level(weir_walk *walk)
{
    walk_level *level = &walk->levels[--walk->num_levels];
    if (level->listing)
        closedir(level->listing);
    for (size_t i = level->next_entry; i < level->num_entries; i++)
        free(level->entries[i].name);
    free(level->entries);
}

static bool is_self_or_parent(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Reads on in the listing of the innermost level: WEIR_OK or WEIR_EOF. `entry` is valid until the next call. */
static int read_listing(weir_walk *walk, walk_level *level, walk_entry *entry)
{
    for (;;) {
        errno = 0;
        struct dirent *dirent = readdir(level->listing);
        if (!dirent && errno) {
            int code = errno;
            walk->path[level->path_bytes] = '\0';
            report_unreadable(walk, code);
        }
        if (!dirent)
            return WEIR_EOF;
        if (is_self_or_parent(dirent->d_name))
            continue;
        *entry = (walk_entry){ .name = dirent->d_name, .type = dirent->d_type };
        return WEIR_OK;
    }
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const walk_entry *)a)->name, ((const walk_entry *)b)->name);
}

/* Could an entry of this type and name be handed on or entered? What could not is not worth remembering. */
static bool is_of_interest(const weir_walk *walk, const walk_entry *entry)
{
    bool may_be_folder = entry->type == DT_DIR || entry->type == DT_LNK || entry->type == DT_UNKNOWN;
    bool may_be_file = entry->type == DT_REG || entry->type == DT_LNK || entry->type == DT_UNKNOWN;
    if (may_be_folder && !walk->config->flat)
        return true;
    return may_be_file && (!walk->config->glob || fnmatch(walk->config->glob, entry->name, FNM_EXTMATCH) == 0);
}

static int append_entry(walk_level *level, size_t *max_entries, const walk_entry *entry)
{
    if (level->num_entries == *max_entries) {
        size_t grown_entries = *max_entries ? *max_entries * 2 : 64;
        walk_entry *grown = realloc(level->entries, grown_entries * sizeof *grown);
        if (!grown)
            return WEIR_ENOMEM;
        level->entries = grown;
        *max_entries = grown_entries;
    }
    char *name = strdup(entry->name);
    if (!name)
        return WEIR_ENOMEM;
    level->entries[level->num_entries++] = (walk_entry){ .name = name, .type = entry->type };
    return WEIR_OK;
}

/* Reads the whole listing of the innermost level, sorts it, and closes it. */
static int sort_listing(weir_walk *walk, walk_level *level)
{
    size_t max_entries = 0;
    walk_entry entry;
    while (read_listing(walk, level, &entry) == WEIR_OK) {
        if (is_of_interest(walk, &entry) && append_entry(level, &max_entries, &entry) != WEIR_OK)
            return WEIR_ENOMEM;
    }
    closedir(level->listing);
    level->listing = NULL;
    if (level->num_entries > 0)
        qsort(level->entries, level->num_entries, sizeof *level->entries, compare_entries);
    return WEIR_OK;
}

/* Enters the folder at `path`, if it can be read and is none of those we are in. WEIR_OK in any case but for
   WEIR_ENOMEM. */
static int enter_folder(weir_walk *walk)
{
    struct stat folder;
    DIR *listing = NULL;
    int rc = WEIR_OK;
    int fd = open_folder(walk->path);
    if (fd < 0 || fstat(fd, &folder) < 0)
        goto unreadable;
    if (is_on_the_stack(walk, &folder))
        goto done;
    listing = fdopendir(fd);
    if (!listing)
        goto unreadable;
    fd = -1;

    walk_level *level = push_level(walk);
    if (!level) {
        closedir(listing);
        return WEIR_ENOMEM;
    }
    level->listing = listing;
    level->device = folder.st_dev;
    level->inode = folder.st_ino;
    walk->num_folders++;
    if (walk->config->sorted)
        rc = sort_listing(walk, level);
    goto done;

unreadable:
    report_unreadable(walk, errno);
done:
    if (fd >= 0)
        close(fd);
    return rc;
}

/* What the entry at `path` is, links followed: DT_REG, DT_DIR or DT_UNKNOWN for all else. A link to nowhere counts as
   a file: whoever opens it finds out, and says so. */
static unsigned char resolve_type(const weir_walk *walk, unsigned char type)
{
    if (type == DT_REG || type == DT_DIR)
        return type;
    if (type != DT_LNK && type != DT_UNKNOWN)
        return DT_UNKNOWN;

    struct stat target;
    if (stat(walk->path, &target) < 0)
        return type == DT_LNK ? DT_REG : DT_UNKNOWN;
    return S_ISREG(target.st_mode) ? DT_REG : S_ISDIR(target.st_mode) ? DT_DIR : DT_UNKNOWN;
}

/* Takes the next entry of the innermost level. The caller frees a sorted one's name. */
static int take_entry(weir_walk *walk, walk_level *level, walk_entry *entry)
{
    if (level->listing)
        return read_listing(walk, level, entry);
    if (level->next_entry == level->num_entries)
        return WEIR_EOF;
    *entry = level->entries[level->next_entry++];
    return WEIR_OK;
}

/* One entry of the innermost level: WEIR_OK (`path` is a file that matches), WEIR_SKIP (go on) or WEIR_ENOMEM. */
static int step(weir_walk *walk)
{
    walk_level *level = &walk->levels[walk->num_levels - 1];
    bool sorted = !level->listing;
    walk_entry entry;
    if (take_entry(walk, level, &entry) == WEIR_EOF) {
        pop_level(walk);
        return WEIR_SKIP;
    }

    bool interesting = is_of_interest(walk, &entry);
    bool matches = interesting && (!walk->config->glob || fnmatch(walk->config->glob, entry.name, FNM_EXTMATCH) == 0);
    int rc = interesting ? set_path(walk, level->path_bytes, entry.name) : WEIR_SKIP;
    if (sorted)
        free(entry.name);
    if (rc != WEIR_OK)
        return rc;

    switch (resolve_type(walk, entry.type)) {
    case DT_REG: return matches ? WEIR_OK : WEIR_SKIP;
    case DT_DIR: rc = walk->config->flat ? WEIR_OK : enter_folder(walk); return rc == WEIR_OK ? WEIR_SKIP : rc;
    default: return WEIR_SKIP;
    }
}

int weir_walk_next(weir_walk *walk, const char **path)
{
    int rc = WEIR_SKIP;
    if (!walk->started) {
        walk->started = true;
        if (enter_folder(walk) != WEIR_OK)
            return WEIR_ENOMEM;
    }
    while (walk->num_levels > 0 && rc == WEIR_SKIP)
        rc = step(walk);
    if (rc == WEIR_SKIP)
        return WEIR_EOF;
    *path = walk->path;
    return rc;
}

uint64_t weir_walk_num_folders(const weir_walk *walk)
{
    return walk->num_folders;
}

void weir_walk_close(weir_walk *walk)
{
    if (!walk)
        return;
    while (walk->num_levels > 0)
        pop_level(walk);
    free(walk->levels);
    free(walk->path);
    free(walk);
}
