/*
 * The isolated stage: runs another operation, usually a decode stage, in child processes, one for each slot. If a file
 * crashes the decoder, makes it loop for ever, or makes it use too much memory, one item fails and the program
 * continues.
 *
 *     weir_pipe_isolated(b, &(weir_isolated_config){ .op = &weir_video_decode, .config = &video,
 *                                                    .config_size = sizeof video },
 *                        &(weir_stage_options){ .name = "decode", .concurrency = 10, .task_deadline_ns = … });
 *
 * In: a path or URL (a char *), a weir_entry * or a weir_bytes *, which is copied to the child. Out: the result of the
 * operation: weir_frames *, weir_audio *, weir_bytes * or text. Frames and samples are not copied: the child writes
 * them to shared memory, which the result maps. Failures are those of the operation, and:
 *   WEIR_EDATA    the child was killed by a signal that it caused; the message names it: "killed by SIGSEGV"
 *   WEIR_ESYSTEM  the child could not be started, was killed from outside (SIGKILL: perhaps out of memory), exited, or sent a
 *                 message that makes no sense; the message names the field: "makes no sense (frames.time_base_den)"
 * After one of these two the slot's next task starts a new child, which takes about 50 ms.
 *
 * All that a child sends is checked. Numbers are in their range: a time base, a sample rate and a scaler are set;
 * counts and times are not negative. A codec's name is printable. Sizes fit the memory that comes with them, and
 * results of weir's decode stages fit their config. Only samples are data, of any value: sound may be infinite or not
 * a number.
 *
 * A stop, or the deadline of the stage (task_deadline_ns), kills the child in any state. Children never outlive the
 * program, not even after SIGKILL. They inherit no descriptors except stderr (and stdin with no_sandbox); their stdout
 * also goes to stderr. They ignore SIGINT, SIGTERM, SIGHUP and SIGPIPE: the program ends them.
 *
 * Each child is in a sandbox before it gets its first item (x86-64 and ARM64, Linux 4.14, weir built with libseccomp; elsewhere
 * each item fails with WEIR_EUNSUPPORTED unless no_sandbox is set). The program opens the files of the decode stages and passes
 * the descriptor, so the child needs no file system. It opens nothing and has no network. It starts no process, and
 * traces and signals no other one. It has no capabilities of root and cannot gain privileges. Others cannot trace or
 * dump it. It gets only those environment variables that libraries need (LD_…, WEIR_…, the locale). A child that
 * tries to open a file gets EACCES. A child that makes one of the other calls is killed: "killed by SIGSYS".
 * Items that are URLs are decoded in another kind of child, which keeps the network. With Landlock, that child may
 * read only the system's libraries, certificates and resolver settings. A slot that gets files and URLs in turn
 * starts a child at each change. The sandbox does not stop a decoder from using CPU and memory (see task_deadline_ns
 * and max_memory_bytes). A decoder can also return wrong frames (of later files of the same child, too), and read
 * what it has: the items.
 *
 * Children are started with posix_spawn(), never with fork() alone, so multi-threaded programs can use them. Each child
 * runs a separate program, weir-child, which contains the decode stages of weir. For your own operations, write a
 * child program that calls weir_isolated_serve(); this can be your own program.
 *
 * The results are the same as without isolation; weir_task_seq(), _epoch(), _source() and the label are passed on. But
 * in a child weir_task_should_stop() is never true, and weir_task_event() has no effect. The metric cpu_time contains
 * the CPU time of children. max_all_decoder_bytes of a decode stage applies to each child. The program must not ignore
 * SIGCHLD; if it handles it, it must not wait for processes that it has not started.
 */
#ifndef WEIR_ISOLATED_H
#define WEIR_ISOLATED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/op.h>
#include <weir/pipeline.h>
#include <weir/version.h>
#include <weir/video_reader.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_isolated_config {
    const weir_op *op;  /* required. Not a source; without flush and cancel, and run() never returns WEIR_PENDING */
    const void *config; /* of op, copied; NULL = all-zero. It must not contain pointers, except for the decode stages
                           of weir */
    size_t config_size; /* of *config, in bytes */
    const char
        *program; /* path of the program that runs in the children, of the same version of weir (NULL = that in the
                           environment variable WEIR_CHILD; or, if it is not set, weir-child, which is installed with
                           weir) */
    /* address space of a child, beyond that of the program itself (RLIMIT_AS; 0 = no limit). Beyond it, allocations
       fail in the child, which usually fails with WEIR_ENOMEM. Also the size of a file that it writes (RLIMIT_FSIZE),
       one in memory included. It may have as many of these as descriptors, so a hostile decoder needs a limit of the
       system (a control group), too */
    uint64_t max_memory_bytes;
    bool no_sandbox; /* isolation from faults only: for operations that open files or connections themselves */
} weir_isolated_config;

extern WEIR_API const weir_op weir_isolated;

/* Adds the stage to the builder; see weir_builder_pipe(). */
static inline void weir_pipe_isolated(weir_builder *builder, const weir_isolated_config *config,
                                      const weir_stage_options *options)
{
    weir_builder_pipe(builder, &weir_isolated, config, sizeof *config, options);
}

/*
 * Opens a video reader (weir/video_reader.h) whose work a child process does, in the sandbox described above. Use it for files and
 * bytes that are not trusted, without a pipeline. All functions of weir/video_reader.h take it, and give the same frames, times and
 * errors. If a child is killed, or sends an invalid answer, one call fails, as above, and the next call starts a new child.
 *
 * Only program, max_memory_bytes and no_sandbox of the isolated config are used (NULL = all 0); op, config and
 * config_size must not be set. Differences: a file of functions is read into memory here, at most the input's
 * max_pipe_bytes of it; the config has no allocator; weir_video_reader_frames_into() copies the frames once. A call
 * that should_stop() ends kills the child.
 *
 * Statuses and ownership are those of weir_video_reader_open(), and of weir_isolated.
 */
WEIR_API int weir_isolated_reader_open(weir_video_reader **reader, const weir_video_source *source,
                                       size_t source_size, const weir_video_config *config, size_t config_size,
                                       const weir_isolated_config *isolated, size_t isolated_size, weir_error *error);

/*
 * Call it at the start of main() in a child program, before anything else. In a child that weir_isolated has started
 * it never returns: it runs the requested operation, one of `ops` (by name) or a decode stage, until the parent ends.
 * In any other process it returns WEIR_EINVAL at once, and the program continues.
 */
WEIR_API int weir_isolated_serve(int argc, char *const argv[], const weir_op *const *ops, size_t num_ops);

#ifdef __cplusplus
}
#endif

#endif
