/* No output of a command destroys one of its inputs, or a file of another kind; and none is left half-made. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/replacement.h"
#include "tests/program.h"
#include "tests/test_case.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

enum { DONE = 0, REFUSED = 2 };

static char *folder;

/* Runs a line of shell in the folder `work`, where `weir` is the command; prints what was not expected. */
static bool runs(const char *line, int expected)
{
    char script[4096];
    struct program program;
    snprintf(script, sizeof script, "cd %s/work && weir() { \"$WEIR_TOOL\" \"$@\"; } && %s", folder, line);
    program_run(&program, folder, (char *const[]){ "/bin/sh", "-c", script, NULL });
    bool is_right = program.status == expected;
    if (!is_right)
        fprintf(stderr, "%s: %d, not %d: %s%s\n", line, program.status, expected, program.out, program.err);
    program_free(&program);
    return is_right;
}

/* Every file that the cases use, made once. */
static const char files[] =
    "mkdir -p clips in.csv.d && ffmpeg -v error -f lavfi -i testsrc2=s=64x48:d=1:r=5 -c:v mpeg4 v.mp4 && "
    "cp v.mp4 clips/a.mp4 && cp v.mp4 clips/b.mp4 && "
    "weir record clips --epochs 100 --db-path k.db --trace t.json --openmetrics m.prom -q && cp t.json u.json && "
    "weir record clips --epochs 50 --db-path j.db -q && weir index clips -o x.weir && weir frames v.mp4 --frames 0 "
    "-o p.png && "
    "printf 'path,label\\nv.mp4,one\\n' >list.csv && printf 'v.mp4\\n' >list.txt && tar cf s.tar clips && "
    "tar czf z.tar.gz clips && printf 'some notes\\n' >notes && "
    "ln k.db hard && ln -s k.db soft && ln k.db k.png && ln k.db k.svg && ln -s v.mp4 soft.raw && ln v.mp4 hard.npy "
    "&& "
    "ln clips/a.mp4 clip.hard && ln -s clips/a.mp4 clip.soft && mkdir d && ln k.db d/tasks.csv && "
    "ln k.db d/queues.png && ln -s u.json soft.json && cp k.db f-0000.png && cp k.db k.rank1.db && "
    "cp notes not4s && cp list.txt list.old && cp v.mp4 v.0 && ln clips/b.mp4 stray.db-wal && mkdir m && cp v.mp4 "
    "m/a.mp4 && cp notes "
    "m/a.mp4.npy && "
    "printf '{\"labels\": [1, 2]}\\n' >words.json && printf 1 >one && gzip -c <v.mp4 >photo.json.gz && "
    "cp k.db lone.db && ln clips/b.mp4 lone.db-shm && echo gone >gone.db-wal";

static int set_up(void **state)
{
    (void)state;
    folder = make_folder();
    char *work = path_in(folder, "work");
    char line[4200];
    snprintf(line, sizeof line, "mkdir '%s'", work);
    free(work);
    if (system(line) != 0) /* NOLINT */
        return -1;
    return runs(files, DONE) && runs("cp -a . ../before", DONE) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    remove_folder(folder);
    return 0;
}

/* Whether the line is refused and leaves everything as it was. */
static bool leaves_all(const char *line)
{
    bool is_right = runs(line, REFUSED);
    if (!runs("diff -r --no-dereference ../before . >&2", DONE)) {
        fprintf(stderr, "^ %s\n", line);
        is_right = false;
    }
    if (!is_right) /* in place, so that links stay links to the same files */
        runs("cd .. && rm -rf work && cp -a before work", DONE);
    return is_right;
}

static void all_leave_all(const char *const *lines, size_t num_lines)
{
    size_t num_wrong = 0;
    for (size_t i = 0; i < num_lines; i++)
        num_wrong += !leaves_all(lines[i]);
    if (num_wrong)
        fail_msg("%zu of %zu were not refused, or have changed a file", num_wrong, num_lines);
}

TEST_CASE(an_output_is_never_an_input)
{
    static const char *const lines[] = {
        "weir report k.db -o k.db",
        "weir report k.db -o hard",
        "weir report k.db -o soft",
        "weir report soft -o k.db",
        "weir report k.db -o k.db-wal",
        "weir report k.db -o ./k.db-shm",
        "weir report k.db -o clips/../k.db-journal",
        "weir report k.db -o k.db --force",
        "weir export k.db -f openmetrics -o k.db",
        "weir export k.db -f json -o k.db-wal",
        "weir export k.db -f csv --table tasks -o soft",
        "weir export k.db -f csv -o d --force",
        "weir plot k.db -o k.svg",
        "weir plot k.db -o d --force",
        "weir trace t.json u.json -o t.json",
        "weir trace t.json u.json -o soft.json",
        "weir trace t.json u.json -o ./u.json --force",
        "weir frames v.mp4 --format npy -o v.mp4",
        "weir frames v.mp4 --format raw -o ./v.mp4 --force",
        "weir frames v.mp4 -o soft.raw",
        "weir frames v.mp4 -o hard.npy --force",
        "weir frames hard.npy --format npy -o v.mp4",
        "weir merge k.db k.db",
        "weir merge hard k.db",
        "weir merge j.db k.db j.db",
        "weir merge k.db-wal k.db",
        "weir index list.csv -o list.csv",
        "weir index s.tar --tar -o s.tar",
        "weir index v.mp4 -o hard.npy",
        "weir index clips -o clips/a.mp4",
        "weir record clips --trace clips/a.mp4",
        "weir record clips --trace clips/a.mp4 --force",
        "weir record clips --trace clip.hard --force",
        "weir record clips --trace clip.soft --force",
        "weir record clips --openmetrics clips/b.mp4 --force",
        "weir record clips/a.mp4 --openmetrics clip.hard --force",
        "weir record clips --tensorboard clips/a.mp4 --force",
        "weir record clips --db-path clips/a.mp4",
        "weir record --list list.txt --trace list.txt --force",
        "weir record --list list.old --trace list --force", /* whose older half would be list.old */
        "weir record --list list.txt --openmetrics list.txt",
        "weir record --list list.txt --openmetrics v.mp4 --force",
        "weir record --list list.txt --db-path list.txt",
        "weir record clips --resume k.db --db-path new.db --trace k.db --force",
        "weir record clips --resume k.db --db-path new.db --openmetrics k.db-wal",
        "weir record clips --db-path new.db --trace new.db",
        "weir record clips --db-path new.db --trace new.db-wal",
        "weir record clips --db-path k.db --openmetrics soft --force",
        "weir record clips --db-path new.db --openmetrics both --trace both",
        "weir frames v.mp4 --format raw -o - 1<>v.mp4",
        "weir frames v.mp4 --format raw -o - >>hard.npy",
        "weir report k.db -o - 1<>k.db",
        "weir export k.db -f json -o - >>hard",
        "weir frames pipe:0 --format npy -o v.mp4 --force <v.mp4",
        "weir frames file:v.mp4 --format npy -o v.mp4 --force",
        "weir frames \"file://$PWD/v.mp4\" --format npy -o v.mp4 --force",
        "weir frames \"/$PWD/v.mp4\" --format npy -o v.mp4 --force",
        "weir frames v.mp4 --ca-file notes --format raw -o notes --force",
        "weir record --list - --db-path new.db --trace list.txt --force <list.txt",
        "weir record clips --ca-file notes --db-path new.db --trace notes --force",
        "weir record clips --db-path new.db --trace 'clips/a.mp{rank}' --rank 4 --world 5 --force",
        "weir record clips --db-path new.db --trace 'not{rank}s' --rank 4 --world 5",
        "weir record clips --resume k.db --db-path new.db --trace k.rank1.db --force",
        "weir frames m --glob 'a*' --count 1 -o m --force; test $? = 1 && exit 2",
        "weir record clips --db-path stray.db",
        "weir record clips --db-path lone.db",
        "weir record clips --db-path gone.db",
        "weir merge stray.db k.db",
        "weir index clips -o stray.db",
        /* what is printed goes to it */
        "weir record clips --db-path /dev/stdout >>k.db",
        "weir record clips --db-path j.db >>j.db",
        "weir record clips --db-path new.db --trace t.json >>t.json",
        "weir record clips --db-path new.db --trace t.json --force >>t.json",
        "weir record clips --db-path new.db --openmetrics /dev/stdout >>m.prom",
        "weir report k.db -o p.png --force >>p.png",
        "weir index clips -o /dev/stdout >>x.weir",
        "weir merge /dev/stdout k.db >>j.db",
        "$SIMULATE --pattern decode --seconds 1 --db-path j.db --trace /dev/stdout >>j.db; exit 2",
        /* one file for two outputs */
        "$SIMULATE --pattern decode --seconds 1 --db-path k.db --trace k.db; exit 2",
    };
    all_leave_all(lines, LENGTH(lines));
}

TEST_CASE(two_outputs_of_one_path_are_told_to_be_outputs)
{
    static const char *const pairs[][2] = { { "trace", "openmetrics" },
                                            { "openmetrics", "db-path" },
                                            { "trace", "db-path" } };
    for (size_t i = 0; i < LENGTH(pairs); i++) {
        char line[512];
        snprintf(line, sizeof line,
                 "weir record clips --%s both --%s both 2>../said; [ $? -eq 2 ] && [ ! -e both ] && "
                 "grep -qE 'both is the output of --(%s|%s), too' ../said",
                 pairs[i][0], pairs[i][1], pairs[i][0], pairs[i][1]);
        assert_true(runs(line, DONE));
    }
}

TEST_CASE(a_file_of_another_kind_is_not_replaced)
{
    static const char *const lines[] = {
        "weir report k.db -o v.mp4",
        "weir report k.db -o j.db",
        "weir report k.db -o p.png",
        "weir report k.db -o notes",
        "weir export k.db -f openmetrics -o x.weir",
        "weir export k.db -f openmetrics -o t.json",
        "weir export k.db -f json -o v.mp4",
        "weir export k.db -f csv --table tasks -o p.png",
        "weir export k.db -f csv --table tasks -o notes",
        "weir export j.db -f csv -o d",
        "weir export k.db -f tensorboard -o v.mp4",
        "weir plot j.db -o k.svg",
        "weir plot j.db -o d",
        "weir trace t.json -o k.db",
        "weir trace t.json -o v.mp4",
        "weir trace t.json -o z.tar.gz",
        "weir frames clips/a.mp4 --format npy -o v.mp4",
        "weir frames v.mp4 --format npy -o j.db",
        "weir frames v.mp4 --format raw -o j.db",
        "weir frames v.mp4 --format raw -o notes",
        "weir frames v.mp4 --frames 1 -o k.png",
        "weir frames v.mp4 --frames 0,1 -o f-%04d.png",
        "weir merge v.mp4 k.db",
        "weir merge x.weir k.db; test $? = 1 && exit 2",
        "weir merge notes k.db",
        "weir index clips -o k.db",
        "weir index clips -o v.mp4",
        "weir index clips -o list.txt",
        "weir record clips --db-path new.db --trace k.db",
        "weir record clips --db-path new.db --trace x.weir",
        "weir record clips --db-path new.db --trace v.mp4",
        "weir record clips --db-path new.db --trace z.tar.gz",
        "weir record clips --db-path new.db --openmetrics k.db",
        "weir record clips --db-path new.db --openmetrics x.weir",
        "weir record clips --db-path new.db --openmetrics v.mp4",
        "weir record clips --db-path new.db --tensorboard k.db",
        "weir record clips --db-path x.weir",
        "weir record clips --db-path v.mp4",
        "weir record clips --db-path list.csv",
        "weir record clips --db-path new.db --trace words.json",
        "weir export k.db -f json -o t.json",
        "weir index clips -o one",
        "weir record clips --db-path one",
        "weir trace t.json -o photo.json.gz",
        "$SIMULATE --pattern decode --seconds 1 --db-path j.db --trace v.mp4; exit 2",
        "$SIMULATE --pattern decode --seconds 1 --db-path j.db --trace words.json; exit 2",
        "$SIMULATE --pattern decode --seconds 1 --db-path v.mp4; exit 2",
        "$TRAINING x.weir 1 v; rm -f x.weir-*; exit 2", /* of rank 0: v.0 */
        "$WEIR_BENCH stop --json v.mp4",
        "$WEIR_BENCH stop --json notes",
    };
    all_leave_all(lines, LENGTH(lines));
}

/* A report that is named like a picture is opened by another program, which says that it is damaged. */
TEST_CASE(a_name_that_says_something_else_is_refused_and_the_right_ones_are_named)
{
    static const char *const lines[] = {
        "weir report k.db -o x.pdf 2>../said; s=$?; grep -q 'x.pdf: an HTML page .*[.]html' ../said && exit $s",
        "weir report k.db -o x.PNG",
        "weir report k.db -o x.json",
        "weir report k.db -o x.mp4",
        "weir export k.db -f json -o x.csv",
        "weir export k.db -f openmetrics -o x.html",
        "weir export k.db -f csv --table tasks -o x.json",
        "weir plot k.db -o x.png",
        "weir trace t.json -o x.png",
        "weir trace t.json -o x.db",
        "weir frames v.mp4 --format npy -o x.png",
        "weir frames v.mp4 --format raw -o x.npy",
        "weir frames v.mp4 --format png -o x.raw --frames 1",
        "weir merge x.csv k.db",
        "weir index clips -o x.json",
        "weir record clips --db-path x.json",
        "weir record clips --db-path new.db --trace x.mp4",
        "weir record clips --db-path new.db --openmetrics x.json",
        "$WEIR_BENCH stop --json x.html",
    };
    all_leave_all(lines, LENGTH(lines));
    assert_true(runs("weir report k.db -o x.HTM && weir report k.db -o x && weir report k.db -o x.page && "
                     "weir frames v.mp4 --format raw -o x.bin && weir report k.db -o x.pdf --force",
                     DONE));
    assert_true(runs("cd .. && rm -rf work && cp -a before work", DONE));
}

TEST_CASE(a_file_of_its_own_kind_an_empty_one_and_a_forced_one_are_replaced)
{
    static const char *const lines[] = {
        "weir report k.db -o r && weir report k.db -o r && : >r && weir report k.db -o r && weir report k.db --force "
        "-o notes",
        "weir export k.db -f openmetrics -o m.prom && weir export k.db -f openmetrics --laps -o m.prom",
        "weir export k.db -f json -o e && weir export k.db -f json -o e",
        "weir export k.db -f csv -o tables && weir export k.db -f csv -o tables",
        "weir export k.db -f csv --table tasks -o - >/dev/null",
        "weir trace t.json u.json -o w.json && weir trace t.json u.json -o w.json && weir trace t.json -o v.mp4 "
        "--force",
        "weir record clips -q --db-path k.db --trace t.json --openmetrics m.prom --tensorboard tb",
        "weir record clips -q --db-path k.db --trace t.json --openmetrics m.prom --tensorboard tb",
        "weir record clips -q --db-path k.db --trace z.tar.gz --openmetrics list.txt --force",
        "weir record clips -q --db-path j.db --resume j.db",
        "weir frames clips/a.mp4 -o o.npy && weir frames clips/a.mp4 -o o.npy && weir frames clips/a.mp4 --force -o "
        "hard.npy",
        "weir frames clips/a.mp4 -o o.raw && weir frames clips/a.mp4 -o o.raw",
        "weir frames clips/a.mp4 -o o-%d.png && weir frames clips/a.mp4 -o o-%d.png && weir frames clips/a.mp4 "
        "--force -o f-%04d.png",
        "weir frames clips/a.mp4 --width 64 --height 48 -o /dev/null --format raw",
        "weir merge all.db k.db j.db && weir merge all.db k.db j.db",
        "weir index clips -o x.weir && weir index clips -o x.weir && : >y.weir && weir index clips -o y.weir",
    };
    for (size_t i = 0; i < LENGTH(lines); i++)
        if (!runs(lines[i], DONE))
            fail_msg("%s", lines[i]);
    assert_true(runs("cd .. && rm -rf work && cp -a before work", DONE));
}

/* Only root can make files of others. */
TEST_CASE(what_others_have_planted_is_not_followed)
{
    static const char planted[] =
        "mkdir open && chmod 1777 open && mkfifo open/pipe && weir report k.db -o page && ln -s ../page open/page && "
        "cp page page.before && chown -h nobody open/pipe open/page";
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: what_others_have_planted_is_not_followed: needs root\n");
        skip();
    }
    assert_true(runs(planted, DONE));
    assert_true(runs("\"$WEIR_TOOL\" report k.db -o open/pipe", REFUSED));
    assert_true(runs("weir report j.db -o open/page && test ! -L open/page && cmp page page.before", DONE));
    assert_true(runs("mkfifo own && (cat own >copy & weir report j.db -o own && wait) && test -s copy", DONE));
    assert_true(runs("weir report k.db -o /dev/stdout | grep -q html", DONE));
    assert_true(runs("cd .. && rm -rf work && cp -a before work", DONE));
}

/* ---- without a name until it is whole ----------------------------------------------------------------------------- */

static size_t count_files(const char *path)
{
    size_t count = 0;
    DIR *opened = opendir(path);
    for (struct dirent *entry; opened && (entry = readdir(opened));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (opened)
        closedir(opened);
    return count;
}

/* `weir frames /dev/stdin …`, whose input is a pipe that never has anything: it cannot be done. */
static pid_t start_frames(const char *out, const char *format, const char *to, int *feed)
{
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        setenv("TMPDIR", out, 1);
        dup2(pipe_fds[0], STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        close(pipe_fds[1]);
        execl(getenv("WEIR_TOOL"), "weir", "frames", "/dev/stdin", "--format", format, "-o", to, (char *)NULL);
        _exit(99);
    }
    close(pipe_fds[0]);
    *feed = pipe_fds[1];
    return child;
}

/* It is ended as soon as it has its file. Held constant: the file system of the temporary folder, which has nameless files
   (where it has none, SIGKILL leaves a hidden one); nothing has been decoded yet. */
TEST_CASE(whatever_ends_a_program_leaves_nothing_of_an_incomplete_file)
{
    static const char *const jobs[][2] = { { "npy", "-" }, { "npy", "a.npy" }, { "raw", "a.raw" } };
    static const int signals[] = { SIGKILL, SIGQUIT, SIGXCPU, SIGPIPE, SIGTERM };
    char *out = path_in(folder, "out");
    assert_int_equal(mkdir(out, 0777), 0);
    for (size_t i = 0; i < LENGTH(jobs) * LENGTH(signals); i++) {
        const char *const *job = jobs[i / LENGTH(signals)];
        int signal_number = signals[i % LENGTH(signals)], feed, status;
        char *to = strcmp(job[1], "-") == 0 ? strdup("-") : path_in(out, job[1]);
        pid_t child = start_frames(out, job[0], to, &feed);
        while (!program_has_part_in(child, out) && waitpid(child, &status, WNOHANG) == 0)
            sched_yield();
        assert_int_equal(kill(child, signal_number), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        close(feed);
        if (!WIFSIGNALED(status) || count_files(out) > 0)
            fail_msg("%s to %s, signal %d: wait status %d, %zu files", job[0], to, signal_number, status,
                     count_files(out));
        free(to);
    }
    assert_int_equal(rmdir(out), 0);
    free(out);
}

/* The reader takes the first bytes and goes: SIGPIPE. */
TEST_CASE(a_reader_that_goes_away_leaves_nothing_in_the_temporary_folder)
{
    assert_true(
        runs("mkdir tmp && { TMPDIR=$PWD/tmp \"$WEIR_TOOL\" frames v.mp4 --width 1000 --height 1000 --format npy "
             "-o -; } | head -c 10 | cmp -n 6 - o.first 2>/dev/null; ls -A tmp >&2; test -z \"$(ls -A tmp)\"",
             DONE));
    assert_true(runs("rm -r tmp", DONE));
}

/* ---- standard descriptors ----------------------------------------------------------------------------------------- */

/* Broken clips make the program log lines, which must not get into a file that has got the number of a closed descriptor.
   All eight ways to close some of the three; the lines end in their own redirections. */
TEST_CASE(a_program_with_closed_standard_descriptors_writes_nothing_into_its_files)
{
    static const char *const closed[] = {
        "", "<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-"
    };
    static const char lines[] =
        "shut() { eval '\"$@\"' \"$closed\"; }; is_trace() { weir trace $1 >/dev/null && head -c 1 $1 | grep -q "
        "'\\['; }; "
        "rm -rf c && mkdir c && cd c && mkdir d && cp ../v.mp4 d/1.mp4 && cp ../v.mp4 d/2.mp4 && head -c 300 "
        "../v.mp4 "
        ">d/3.mp4 || exit 1; "
        "shut \"$WEIR_TOOL\" record d --db-path r.db --trace t.json --openmetrics m.prom -q; "
        "weir check r.db >&2 && is_trace t.json && head -c 1 m.prom | grep -q '#' && ! grep -l warning t.json m.prom "
        ">&2 "
        "|| exit 1; "
        "shut \"$WEIR_TOOL\" record d " ISOLATE " --db-path i.db -q; "
        "weir failures i.db --csv | grep -q '^reason,WEIR_EDATA.*,1,1,d/3.mp4' || exit 1; "
        "shut \"$WEIR_TOOL\" frames d/1.mp4 -o a.npy; weir frames d/1.mp4 -o b.npy && cmp a.npy b.npy || exit 1; "
        "shut \"$WEIR_TOOL\" report r.db -o p.html; head -c 9 p.html | grep -q DOCTYPE || exit 1; "
        "shut \"$SIMULATE\" --pattern decode --seconds 0.5 --db-path s.db --trace s.json; "
        "weir check s.db >&2 && is_trace s.json || exit 1; "
        "shut \"$WEIR_TOOL\" index d -o x.weir; shut \"$TRAINING\" x.weir 1 run; "
        "head -c 15 run.0 | grep -q 'weir checkpoint'";
    char line[4000];
    for (size_t i = 0; i < LENGTH(closed); i++) {
        snprintf(line, sizeof line, "closed='%s'; %s", closed[i], lines);
        if (!runs(line, DONE))
            fail_msg("with %s", closed[i]);
    }
    assert_true(runs("rm -r c", DONE));
}

/* What is printed to a closed stdout is lost: the exit status says so. */
TEST_CASE(printing_to_a_closed_stdout_is_a_failure)
{
    assert_true(runs("weir summary k.db >&- 2>/dev/null", 1));
    assert_true(runs("weir summary k.db 2>&- >/dev/null", DONE));
}

/* Each program begins with it; what is measured above are some of them. */
TEST_CASE(every_program_opens_the_standard_descriptors_first)
{
    assert_int_equal(system("for f in $(grep -rlE '^int main' tools bench examples stages); do " /* NOLINT */
                            "grep -A2 '^int main' $f | tail -1 | grep -q 'weir_standard_files_open();' || "
                            "{ echo $f >&2; exit 1; }; done"),
                     0);
}

/* ---- databases ----------------------------------------------------------------------------------------------------- */

/* Makes a.db, $1 being a prefix that limits what can be written. Nothing is left, or a whole database; of a merge, with
   its runs. */
static const char makers[] =
    "whole() { test -z \"$(ls -A)\" || { test \"$(ls -A | grep -v '^a[.]db\\(-wal\\|-shm\\)*$')\" = '' && \"$@\"; } "
    "|| "
    "{ ls -lA >&2; false; }; }; "
    "fresh() { rm -rf $in; mkdir -p $in; cd $in; }; "
    "each() { "
    "fresh; (eval \"$1\"; weir record $work/clips --db-path a.db -q); whole weir check a.db && "
    "{ fresh; (eval \"$1\"; weir merge a.db $work/k.db); whole weir query a.db --by run; } && "
    "{ fresh; (eval \"$1\"; weir index $work/clips -o a.db); (weir index a.db 2>&1 | grep 'is empty') && return 1; "
    "whole test -s a.db; }; }; "
    "work=$PWD; in=$PWD/../made; ";

TEST_CASE(a_database_is_not_left_half_made_where_there_is_no_room)
{
#ifdef COUNTS_LINES
    skip(); /* the counts of lines are files that the limit would cut, too */
#endif
    char line[4000];
    for (int blocks = 1; blocks <= 1024; blocks += blocks < 16 ? 7 : blocks / 2) { /* of 512 bytes */
        snprintf(line, sizeof line, "%s each 'ulimit -f %d'", makers, blocks);
        if (!runs(line, DONE))
            fail_msg("with %d blocks, something half-made is left", blocks);
    }
}

TEST_CASE(a_database_is_not_left_half_made_on_a_full_disk)
{
    char line[4000];
    if (!runs("mkdir ../small && mount -t tmpfs -o size=64k none ../small && umount ../small", DONE)) {
        fprintf(stderr, "skipped: a_database_is_not_left_half_made_on_a_full_disk: tmpfs cannot be mounted\n");
        skip();
    }
    for (int pages = 2; pages <= 256; pages += pages < 16 ? 7 : pages / 2) {
        snprintf(line, sizeof line,
                 "%s in=$PWD/../small; trap 'cd /; umount $in' EXIT; mount -t tmpfs -o size=%dk none $in; "
                 "fresh() { cd $in && rm -rf a.db* .??*; }; each :",
                 makers, 4 * pages);
        if (!runs(line, DONE))
            fail_msg("with %d pages, something half-made is left", pages);
    }
}

/* A bind mount, which root needs, too: it may write to any folder. */
TEST_CASE(where_an_index_cannot_be_made_the_reason_is_told)
{
    if (!runs("mkdir ../fixed && cp v.mp4 ../fixed && mount --bind ../fixed ../fixed && umount ../fixed", DONE)) {
        fprintf(stderr, "skipped: where_an_index_cannot_be_made_the_reason_is_told: nothing can be mounted\n");
        skip();
    }
    assert_true(runs("mount --bind ../fixed ../fixed && mount -o remount,ro,bind ../fixed; cd ../fixed; "
                     "weir index . 2>../said; weir index v.mp4 -o x.weir 2>>../said; cd ../work; umount ../fixed; "
                     "test $(grep -c 'Read-only file system' ../said) = 2 || { cat ../said >&2; exit 1; }",
                     DONE));
    assert_true(runs("weir index clips -o nowhere/x.weir 2>&1 | grep -q 'nowhere/x.weir: No such file'", DONE));
}

static int interrupt_this(void *self, const char *path_before)
{
    (void)self;
    write_file(path_before, "half of a datab");
    raise(SIGINT);
    return weir__signal_waits() ? 0 : -1;
}

static int fail_half_way(void *self, const char *path_before)
{
    (void)self;
    char *log = NULL;
    write_file(path_before, "half of a datab");
    assert_true(asprintf(&log, "%s-wal", path_before) > 0);
    write_file(log, "and its log");
    free(log);
    return -7;
}

static int lose_the_race(void *path, const char *path_before)
{
    write_file(path_before, "mine");
    write_file(path, "theirs");
    return 0;
}

/* The signal comes when the file is complete. */
TEST_CASE(an_interrupt_while_a_database_is_made_leaves_nothing_half_made)
{
    char *own = make_folder(), *path = path_in(own, "a.db");
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(weir__make_beside(path, interrupt_this, NULL) + 100);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    char *text = read_file(path);
    assert_string_equal(text, "half of a datab"); /* what the function has made */
    free(text);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(weir__make_beside(path, fail_half_way, NULL), -7);
    assert_int_equal(rmdir(own), 0); /* nothing is in it */
    assert_int_equal(mkdir(own, 0777), 0);

    assert_int_equal(weir__make_beside(path, lose_the_race, path), EEXIST);
    text = read_file(path);
    assert_string_equal(text, "theirs");
    free(text);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(own), 0);
    free(path);
    free(own);
}

/* They are ended as soon as there is a file. (The shell lets programs in the background ignore SIGINT.) */
TEST_CASE(a_program_that_is_ended_early_leaves_nothing_half_made)
{
    char line[4000];
    for (int i = 0; i < 5; i++) {
        snprintf(line, sizeof line,
                 "%s ended() { fresh; \"$WEIR_TOOL\" \"$@\" >/dev/null & while test -z \"$(ls -A)\" && kill -0 $!; "
                 "do :; done; "
                 "kill -TERM $! 2>/dev/null; wait $!; true; }; "
                 "ended record $work/clips --epochs 1000 --db-path a.db -q && whole weir check a.db && "
                 "ended merge a.db $work/k.db && whole weir check a.db && "
                 "ended report $work/k.db --force -o a.db && whole grep -q '</html>' a.db && "
                 "ended index $work/clips -o a.db && whole test $(wc -c <a.db) -gt 4096",
                 makers);
        assert_true(runs(line, DONE));
    }
}

TEST_CASE(two_that_create_the_same_database_both_work)
{
    for (int i = 0; i < 5; i++) {
        assert_true(runs("rm -f two.db* && (weir record clips -q --db-path two.db & "
                         "weir record clips -q --db-path two.db & wait %1 && wait %2)",
                         DONE));
        assert_true(runs("test $(weir query two.db --by run --csv | wc -l) = 3 && weir check two.db", DONE));
        assert_true(
            runs("rm -f two.db* && (weir merge two.db k.db & weir merge two.db j.db & wait %1 && wait %2)", DONE));
        assert_true(runs("test $(weir query two.db --by run --csv | wc -l) = 3 && rm two.db", DONE));
    }
}

/* The other database has a run of the same number, whose summary would be that of another run. */
TEST_CASE(a_database_that_goes_away_during_a_run_is_told_and_has_no_summary)
{
    static const char *const ways[] = { "rm lost.db*", "rm lost.db* && cp j.db lost.db" };
    char line[2000];
    for (size_t i = 0; i < LENGTH(ways); i++) {
        snprintf(line, sizeof line,
                 "{ \"$WEIR_TOOL\" record clips --epochs 1000000 --log-interval 0.1 --db-path lost.db >out 2>err & "
                 "until weir query lost.db --by run >/dev/null 2>&1; do :; done; %s; kill -TERM $!; wait $!; "
                 "test $? = 1 && test ! -s out && ! grep writable err && "
                 "grep 'was deleted or replaced while it was open: .* entries could not be written' err >&2; "
                 "is_told=$?; rm -f lost.db* out err; exit $is_told; }",
                 ways[i]);
        assert_true(runs(line, DONE));
    }
}

TEST_CASE(a_link_to_nothing_or_of_another_user_is_no_database)
{
    static const char *const lines[] = { "weir record clips -q --db-path gone/link", "weir merge gone/link k.db",
                                         "weir index clips -o gone/link" };
    assert_true(runs("mkdir gone && ln -s nothing gone/link", DONE));
    for (size_t i = 0; i < LENGTH(lines); i++)
        assert_true(runs(lines[i], REFUSED) && runs("test ! -e gone/nothing", DONE));
    if (geteuid() == 0) {
        assert_true(runs("chmod 1777 gone && cp k.db gone/nothing && chown -h nobody gone/link", DONE));
        for (size_t i = 0; i < LENGTH(lines); i++)
            assert_true(runs(lines[i], REFUSED) && runs("cmp gone/nothing k.db", DONE));
    }
    assert_true(runs("rm -r gone", DONE));
}

TEST_MAIN(NULL, NULL, set_up, tear_down)
