/*
 * The walk is depth first. It keeps a stack of the folders from the root to the current one. Only the innermost is
 * open, so a deep tree takes one descriptor. Its files are passed on as they are read. The names of its subfolders
 * are kept until it has been read and closed. With `sorted` all names are kept first, and sorted.
 *
 * Invariants: a level above the innermost is closed. `path` is the path of the innermost level, plus, during a step,
 * the name of its entry. Each folder (device and inode) is entered once in the whole walk. That ends link loops, and
 * avoids the exponentially many paths that exist where folders link to each other.
 */
#include "stages/source/directory_walk.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/files.h>

/* A folder's entry. */
typedef struct walk_entry {
    char *name;
    unsigned char type; /* DT_… */
} walk_entry;

/* A folder between the root and the current entry. */
typedef struct walk_level {
    size_t path_bytes;   /* of the folder's path */
    walk_entry *entries; /* to be taken once the folder is closed */
    size_t num_entries;
    size_t max_entries;
    size_t next_entry;
} walk_level;

/* A folder that has been entered. */
typedef struct walk_folder {
    dev_t device;
    ino_t inode;
    bool is_used;
} walk_folder;

struct weir_walk {
    const weir_directory_config *config;
    weir_walk_listener listener;

    DIR *listing; /* of the innermost level; NULL = it has been read */
    walk_level *levels;
    size_t num_levels;
    size_t max_levels;
    bool started;
    int root_errno; /* why the root could not be opened */

    walk_folder *entered; /* a hash table, at most half full */
    size_t max_entered;   /* a power of two */
    uint64_t num_folders; /* in it */

    char *path;
    size_t path_bytes; /* without the terminating 0 */
    size_t max_path_bytes;
};

static int open_folder(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int weir__walk_check(const weir_directory_config *config, weir_error *error)
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

/* Sets `path` to its first `keep_bytes` plus `name`. */
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

weir_walk *weir__walk_open(const weir_directory_config *config, const weir_walk_listener *listener)
{
    weir_walk *walk = calloc(1, sizeof *walk);
    if (!walk)
        return NULL;
    walk->config = config;
    walk->listener = listener ? *listener : (weir_walk_listener){ 0 };
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
    if (walk->num_folders == 0)
        walk->root_errno = errno_code;
    if (walk->listener.unreadable)
        walk->listener.unreadable(walk->listener.self, walk->path, errno_code);
}

static bool is_walk_stopped(const weir_walk *walk)
{
    return walk->listener.should_stop && walk->listener.should_stop(walk->listener.self);
}

/* ---- folders that have been entered --------------------------------------------------------------------------- */

/* The folder's slot in the table, used or free. */
static walk_folder *find_folder(walk_folder *table, size_t max_entered, dev_t device, ino_t inode)
{
    uint64_t hash = ((uint64_t)inode + (uint64_t)device * 0x9e3779b97f4a7c15u) * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(hash >> 32) & (max_entered - 1);
    while (table[at].is_used && (table[at].device != device || table[at].inode != inode))
        at = (at + 1) & (max_entered - 1);
    return &table[at];
}

static int grow_table(weir_walk *walk)
{
    size_t max_entered = walk->max_entered ? walk->max_entered * 2 : 64;
    walk_folder *grown = calloc(max_entered, sizeof *grown);
    if (!grown)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < walk->max_entered; i++) {
        const walk_folder *folder = &walk->entered[i];
        if (folder->is_used)
            *find_folder(grown, max_entered, folder->device, folder->inode) = *folder;
    }
    free(walk->entered);
    walk->entered = grown;
    walk->max_entered = max_entered;
    return WEIR_OK;
}

/* WEIR_OK: it is new, and was added. WEIR_SKIP: it has been entered before. Or WEIR_ENOMEM. */
static int note_entered(weir_walk *walk, const struct stat *folder)
{
    if (walk->num_folders >= walk->max_entered / 2 && grow_table(walk) != WEIR_OK)
        return WEIR_ENOMEM;
    walk_folder *place = find_folder(walk->entered, walk->max_entered, folder->st_dev, folder->st_ino);
    if (place->is_used)
        return WEIR_SKIP;
    *place = (walk_folder){ .device = folder->st_dev, .inode = folder->st_ino, .is_used = true };
    walk->num_folders++;
    return WEIR_OK;
}

/* ---- levels ---------------------------------------------------------------------------------------------------- */

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

static void close_listing(weir_walk *walk)
{
    if (walk->listing)
        closedir(walk->listing);
    walk->listing = NULL;
}

static void pop_level(weir_walk *walk)
{
    walk_level *level = &walk->levels[--walk->num_levels];
    close_listing(walk);
    for (size_t i = 0; i < level->num_entries; i++)
        free(level->entries[i].name);
    free(level->entries);
}

static bool is_self_or_parent(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* The next entry of the listing: WEIR_OK or WEIR_EOF. `entry` is valid until the next call. */
static int read_listing(weir_walk *walk, const walk_level *level, walk_entry *entry)
{
    for (;;) {
        errno = 0;
        struct dirent *dirent = readdir(walk->listing);
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

/* Can an entry of this type and name be a result or a folder to enter? Others need not be kept. */
static bool is_of_interest(const weir_walk *walk, const walk_entry *entry)
{
    bool may_be_folder = entry->type == DT_DIR || entry->type == DT_LNK || entry->type == DT_UNKNOWN;
    bool may_be_file = entry->type == DT_REG || entry->type == DT_LNK || entry->type == DT_UNKNOWN;
    if (may_be_folder && !walk->config->flat)
        return true;
    return may_be_file && weir_file_name_matches(entry->name, walk->config->glob);
}

static int keep_entry(walk_level *level, const char *name, unsigned char type)
{
    if (level->num_entries == level->max_entries) {
        size_t max_entries = level->max_entries ? level->max_entries * 2 : 64;
        walk_entry *grown = realloc(level->entries, max_entries * sizeof *grown);
        if (!grown)
            return WEIR_ENOMEM;
        level->entries = grown;
        level->max_entries = max_entries;
    }
    char *copy = strdup(name);
    if (!copy)
        return WEIR_ENOMEM;
    level->entries[level->num_entries++] = (walk_entry){ .name = copy, .type = type };
    return WEIR_OK;
}

/* Reads the whole listing of the innermost level, sorts it, and closes it. */
static int sort_listing(weir_walk *walk, walk_level *level)
{
    walk_entry entry;
    while (!is_walk_stopped(walk) && read_listing(walk, level, &entry) == WEIR_OK) {
        if (is_of_interest(walk, &entry) && keep_entry(level, entry.name, entry.type) != WEIR_OK)
            return WEIR_ENOMEM;
    }
    close_listing(walk);
    if (level->num_entries > 0)
        qsort(level->entries, level->num_entries, sizeof *level->entries, compare_entries);
    return WEIR_OK;
}

static int list_folder(weir_walk *walk, DIR *listing)
{
    walk_level *level = push_level(walk);
    if (!level) {
        closedir(listing);
        return WEIR_ENOMEM;
    }
    walk->listing = listing;
    return walk->config->sorted ? sort_listing(walk, level) : WEIR_OK;
}

/* Enters the folder at `path`, if it can be read and has not been entered before. WEIR_OK or WEIR_ENOMEM. */
static int enter_folder(weir_walk *walk)
{
    struct stat folder;
    DIR *listing = NULL;
    int fd = open_folder(walk->path);
    bool is_open = fd >= 0 && fstat(fd, &folder) == 0;
    listing = is_open ? fdopendir(fd) : NULL; /* owns the descriptor now */
    if (!listing) {
        report_unreadable(walk, errno);
        if (fd >= 0)
            close(fd);
        return WEIR_OK;
    }
    int rc = note_entered(walk, &folder);
    if (rc == WEIR_OK)
        return list_folder(walk, listing);
    closedir(listing);
    return rc == WEIR_SKIP ? WEIR_OK : rc;
}

/* The type of the entry at `path`, links followed: DT_REG, DT_DIR or DT_UNKNOWN for all else. A broken link counts as a
   file: the stage that opens it reports the failure. */
static unsigned char resolve_type(weir_walk *walk, unsigned char type)
{
    if (type == DT_REG || type == DT_DIR)
        return type;
    if (type != DT_LNK && type != DT_UNKNOWN)
        return DT_UNKNOWN;

    struct stat target;
    if (stat(walk->path, &target) < 0) {
        if (type == DT_UNKNOWN && errno != ENOENT) /* some file systems do not return types; it may be a folder */
            report_unreadable(walk, errno);
        return type == DT_LNK ? DT_REG : DT_UNKNOWN;
    }
    return S_ISREG(target.st_mode) ? DT_REG : S_ISDIR(target.st_mode) ? DT_DIR : DT_UNKNOWN;
}

/* The next entry of the innermost level: WEIR_OK or WEIR_EOF. While the listing is open, it is from there. */
static int take_entry(weir_walk *walk, walk_level *level, walk_entry *entry)
{
    if (walk->listing && read_listing(walk, level, entry) == WEIR_OK)
        return WEIR_OK;
    close_listing(walk);
    if (level->next_entry == level->num_entries)
        return WEIR_EOF;
    *entry = level->entries[level->next_entry++];
    return WEIR_OK;
}

/* One entry of the innermost level: WEIR_OK (`path` is a file that matches), WEIR_SKIP (continue) or WEIR_ENOMEM. */
static int walk_step(weir_walk *walk)
{
    walk_level *level = &walk->levels[walk->num_levels - 1];
    walk_entry entry;
    if (take_entry(walk, level, &entry) == WEIR_EOF) {
        pop_level(walk);
        return WEIR_SKIP;
    }
    if (!is_of_interest(walk, &entry))
        return WEIR_SKIP;
    int rc = set_path(walk, level->path_bytes, entry.name);
    if (rc != WEIR_OK)
        return rc;

    unsigned char type = resolve_type(walk, entry.type);
    if (type == DT_REG && weir_file_name_matches(entry.name, walk->config->glob))
        return WEIR_OK;
    if (type == DT_DIR && !walk->config->flat)
        rc = walk->listing ? keep_entry(level, entry.name, type) : enter_folder(walk);
    return rc == WEIR_OK ? WEIR_SKIP : rc;
}

int weir__walk_next(weir_walk *walk, const char **path)
{
    int rc = WEIR_SKIP;
    if (!walk->started) {
        walk->started = true;
        if (enter_folder(walk) != WEIR_OK)
            return WEIR_ENOMEM;
        if (walk->num_levels == 0)
            return WEIR_EIO;
    }
    while (walk->num_levels > 0 && rc == WEIR_SKIP)
        rc = is_walk_stopped(walk) ? WEIR_ESTOPPED : walk_step(walk);
    if (rc == WEIR_SKIP)
        return WEIR_EOF;
    *path = walk->path;
    return rc;
}

int weir__walk_root_errno(const weir_walk *walk)
{
    return walk->root_errno;
}

uint64_t weir__walk_num_folders(const weir_walk *walk)
{
    return walk->num_folders;
}

void weir__walk_close(weir_walk *walk)
{
    if (!walk)
        return;
    while (walk->num_levels > 0)
        pop_level(walk);
    free(walk->entered);
    free(walk->levels);
    free(walk->path);
    free(walk);
}

void weir__unread_folder_keep(weir_unread_folder *unread, const char *path, int errno_code)
{
    if (unread->errno_code)
        return;
    unread->errno_code = errno_code;
    snprintf(unread->path, sizeof unread->path, "%s", path);
}
