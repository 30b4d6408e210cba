#include "tests/hung_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support.h"

static struct {
    int fd;
    char point[4096];
    unsigned num_files;
    const char *bytes;
    size_t num_bytes;
    pthread_t server;
    test_gate gate;
    atomic_uint opcode; /* to hang at; 0 = none */
    atomic_ulong node;
    test_counter closed; /* files: -1 for each that is open */
} folder = { .gate = GATE, .closed = COUNTER };

static bool answer(const struct fuse_in_header *in, int error, const void *data, size_t size)
{
    char block[1 << 17];
    struct fuse_out_header out = { .len = (uint32_t)(sizeof out + size), .error = -error, .unique = in->unique };
    memcpy(block, &out, sizeof out);
    if (size)
        memcpy(block + sizeof out, data, size);
    return write(folder.fd, block, out.len) > 0; /* false: the caller has been killed */
}

static struct fuse_attr attributes_of(uint64_t node)
{
    bool is_file = node != FUSE_ROOT_ID;
    return (struct fuse_attr){ .ino = node,
                               .size = is_file ? folder.num_bytes : 0,
                               .mode = is_file ? S_IFREG | 0444 : S_IFDIR | 0555,
                               .nlink = 1,
                               .blksize = 4096 };
}

static void look_up(const struct fuse_in_header *in, const char *name)
{
    uint64_t node = strtoull(name, NULL, 10);
    bool is_there = node > FUSE_ROOT_ID && node <= FUSE_ROOT_ID + folder.num_files;
    struct fuse_entry_out entry = { .nodeid = node, .attr = attributes_of(node) }; /* not kept: asked for each time */
    answer(in, is_there ? 0 : ENOENT, &entry, is_there ? sizeof entry : 0);
}

static void read_bytes(const struct fuse_in_header *in, const struct fuse_read_in *wanted)
{
    size_t from = wanted->offset < folder.num_bytes ? wanted->offset : folder.num_bytes;
    size_t rest = folder.num_bytes - from;
    answer(in, 0, folder.bytes + from, rest < wanted->size ? rest : wanted->size);
}

static void serve(const struct fuse_in_header *in, const void *argument)
{
    struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096 };
    struct fuse_attr_out attributes = { .attr = attributes_of(in->nodeid) };
    struct fuse_open_out open_file = { 0 };
    switch (in->opcode) {
    case FUSE_INIT: answer(in, 0, &init, sizeof init); break;
    case FUSE_LOOKUP: look_up(in, argument); break;
    case FUSE_GETATTR: answer(in, 0, &attributes, sizeof attributes); break;
    case FUSE_OPEN: counter_add(&folder.closed, -answer(in, 0, &open_file, sizeof open_file)); break;
    case FUSE_READ: read_bytes(in, argument); break;
    case FUSE_RELEASE: counter_add(&folder.closed, 1); /* fall through */
    case FUSE_FLUSH: answer(in, 0, NULL, 0); break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT: break;
    default: answer(in, ENOSYS, NULL, 0);
    }
}

static void *serve_all(void *unused)
{
    _Alignas(8) static char request[1 << 17];
    const struct fuse_in_header *in = (const void *)request;
    (void)unused;
    while (read(folder.fd, request, sizeof request) > 0 || errno == EINTR || errno == ENOENT) {
        bool is_it = in->opcode == FUSE_LOOKUP && in->nodeid == FUSE_ROOT_ID
                         ? strtoul(request + sizeof *in, NULL, 10) == folder.node
                         : in->nodeid == folder.node;
        if (in->opcode == folder.opcode && is_it)
            gate_pass(&folder.gate);
        serve(in, request + sizeof *in);
    }
    return NULL;
}

/* Mounts are this process's own: no other sees them, and they end with it. */
static bool own_mounts(void)
{
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return false;
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

bool hung_folder_mount(const char *point, unsigned num_files, const void *bytes, size_t num_bytes)
{
    char options[96];
    folder.fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    snprintf(folder.point, sizeof folder.point, "%s", point);
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%u,group_id=%u", folder.fd, getuid(), getgid());
    if (folder.fd < 0 || !own_mounts() ||
        mount("weir-test", point, "fuse", MS_NOSUID | MS_NODEV | MS_RDONLY, options) != 0) {
        fprintf(stderr, "no FUSE here: %s\n", strerror(errno));
        return false;
    }
    folder.num_files = num_files;
    folder.bytes = bytes;
    folder.num_bytes = num_bytes;
    folder.server = thread_start(serve_all, NULL);
    return true;
}

void hung_folder_unmount(void)
{
    gate_open(&folder.gate);
    umount2(folder.point, MNT_DETACH);
    thread_join(folder.server);
    close(folder.fd);
}

void hung_folder_hang_at(uint32_t opcode, uint64_t file)
{
    counter_await(&folder.closed, 0); /* of programs before */
    gate_shut(&folder.gate);
    folder.node = file;
    folder.opcode = opcode;
}

void hung_folder_await_hanging(void)
{
    gate_await_waiting(&folder.gate, 1);
}

void hung_folder_go_on(void)
{
    folder.opcode = 0;
    gate_open(&folder.gate);
}
