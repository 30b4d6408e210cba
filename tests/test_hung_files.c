/* Files on a file system that stops answering: runs of weir record end nevertheless, and say which file it was. */
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/test_case.h"

#include "tests/clips.h"
#include "tests/hung_folder.h"
#include "tests/program.h"

enum { NUM_FILES = 4, SLOW = 3 /* its file */, MAX_WORDS = 16 };

static char *bytes;
static bool is_mounted;

static int set_up(void **state)
{
    clips_set_up(state);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* to look for them it waits for threads that the kernel holds */
    const char *clip = clips_make("clip.mp4", "-f lavfi -i testsrc2=s=64x48:d=2:r=10 -c:v mpeg4");
    FILE *file = fopen(clip, "rb");
    bytes = calloc(1, 1 << 20);
    size_t size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    clips_make_folder(clips_path("mount"));
    is_mounted = hung_folder_mount(clips_path("mount"), NUM_FILES, bytes, size);
    char list[4096] = "";
    for (int i = 0; i < NUM_FILES; i++) /* a folder would be listed: that is not left behind */
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s/%d.mp4\n", clips_path("mount"), i + 2);
    clips_write_text(clips_path("list.txt"), list);
    alarm(400); /* the file system ends with this process; ctest, which would stop it first, would hang, too */
    return 0;
}

static int tear_down(void **state)
{
    if (is_mounted)
        hung_folder_unmount();
    free(bytes);
    return clips_tear_down(state);
}

static void start_record(struct program *program, const char *more)
{
    static char words[256];
    char *argv[MAX_WORDS] = {
        (char *)(uintptr_t)program_path("WEIR_TOOL"), "record",    "--list",
        (char *)(uintptr_t)clips_path("list.txt"),    "--db-path", (char *)(uintptr_t)clips_path("run.db")
    };
    int count = 6;
    snprintf(words, sizeof words, "%s", more);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        argv[count++] = word;
    program_start(program, clips_path("."), argv, -1);
}

/* Its main thread has ended. The kernel keeps the process until the file system answers, even after kill -9. */
static void await_exit(const struct program *program)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/stat", program->pid);
    for (bool has_ended = false; !has_ended; poll(NULL, 0, 10)) {
        FILE *file = fopen(path, "r");
        const char *name_end = file && fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
        has_ended = !name_end || name_end[2] == 'Z';
        if (file)
            fclose(file);
    }
}

TEST_CASE(runs_end_whose_file_system_does_not_answer)
{
    static const uint32_t hangs[] = { FUSE_LOOKUP, FUSE_OPEN, FUSE_GETATTR, FUSE_READ, FUSE_FLUSH };
    static const char *const commands[] = { "", "--deadline 0.3", ISOLATE " --deadline 0.3" };
    enum { NUM_HANGS = sizeof hangs / sizeof *hangs, NUM_COMMANDS = sizeof commands / sizeof *commands };
    struct program program;
    if (!is_mounted)
        skip();
    for (size_t i = 0; i < NUM_HANGS * NUM_COMMANDS; i++) {
        const char *command = commands[i % NUM_COMMANDS];
        bool by_deadline = strstr(command, "deadline");
        hung_folder_hang_at(hangs[i / NUM_COMMANDS], SLOW);
        start_record(&program, command);
        hung_folder_await_hanging();
        if (!by_deadline)
            kill(program.pid, SIGINT);
        await_exit(&program);
        hung_folder_go_on();
        program_wait(&program, clips_path("."));
        bool is_reported = by_deadline
                               ? strstr(program.err, "mount/3.mp4: ran longer than its deadline of 0.3 s") != NULL
                               : program.status == 130 && strstr(program.out, "stopped after");
        if (!is_reported || (by_deadline && program.status > 1))
            fail_msg("operation %u, %s: %d: %s%s", hangs[i / NUM_COMMANDS], command, program.status, program.out,
                     program.err);
        program_free(&program);
    }
}

TEST_MAIN(NULL, NULL, set_up, tear_down)
