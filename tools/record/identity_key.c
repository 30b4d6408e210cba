#include "tools/record/identity_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/item.h>

#include "common/redact.h"
#include "tools/cli/memory.h"

static void note_object(void *is_found, const weir_secret *secret)
{
    *(bool *)is_found |= secret->kind == WEIR__SECRET_OBJECT;
}

static bool needs_key(const char *const *addresses, size_t num_addresses)
{
    bool is_found = false;
    for (size_t i = 0; i < num_addresses && !is_found; i++)
        weir__secrets_each(addresses[i], note_object, &is_found);
    return is_found;
}

/* The folder of the key, made if it is missing; NULL, errno: there is none. */
static char *open_folder(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    bool has_state = state && *state == '/';
    if (!has_state && !(home && *home == '/')) {
        errno = ENOENT;
        return NULL;
    }
    char *folder = has_state ? memory_format("%s/weir", state) : memory_format("%s/.local/state/weir", home);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0700); /* if this fails, so does the last one */
        *slash = '/';
    }
    if (mkdir(folder, 0700) == 0 || errno == EEXIST)
        return folder;
    free(folder);
    return NULL;
}

static bool read_key(const char *path, unsigned char key[WEIR_IDENTITY_KEY_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t got = fd >= 0 ? read(fd, key, WEIR_IDENTITY_KEY_BYTES) : -1;
    int code = got < 0 ? errno : EINVAL;
    if (fd >= 0)
        close(fd);
    errno = code;
    return got == WEIR_IDENTITY_KEY_BYTES;
}

/* Several processes may do so at once: the first one's key is all of theirs. */
static bool make_key(const char *path)
{
    unsigned char key[WEIR_IDENTITY_KEY_BYTES];
    char *part = memory_format("%s.XXXXXX", path);
    int fd = mkostemp(part, O_CLOEXEC); /* for the owner only */
    bool is_made = fd >= 0 && getrandom(key, sizeof key, 0) == (ssize_t)sizeof key &&
                   write(fd, key, sizeof key) == (ssize_t)sizeof key && fsync(fd) == 0 &&
                   (link(part, path) == 0 || errno == EEXIST);
    int code = errno;
    if (fd >= 0) {
        close(fd);
        unlink(part);
    }
    free(part);
    errno = code;
    return is_made;
}

void identity_key_load(const char *const *addresses, size_t num_addresses)
{
    unsigned char key[WEIR_IDENTITY_KEY_BYTES];
    if (!needs_key(addresses, num_addresses))
        return;
    char *folder = open_folder();
    int code = errno;
    char *path = folder ? memory_format("%s/identity-key", folder) : NULL;
    bool is_read = path && (read_key(path, key) || (errno == ENOENT && make_key(path) && read_key(path, key)));
    if (is_read)
        weir_identity_set_key(key, sizeof key);
    else
        fprintf(
            stderr,
            "weir: cannot keep a key for hidden values of URLs in %s: %s; a later run reads these files again, also "
            "with --resume (set XDG_STATE_HOME to a writable folder)\n",
            path ? path : "~/.local/state/weir", strerror(path ? errno : code));
    free(path);
    free(folder);
}
