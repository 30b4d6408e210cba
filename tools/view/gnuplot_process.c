/*
 * gnuplot does not notice that it cannot write, for example to a full disk. So it writes to a pipe. Its commands come
 * from a file, because it writes before it has read all of them. Its messages go to a file, too: users see them only if
 * it fails, because it also warns of what does no harm.
 */
#include "gnuplot_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child: exits with 127 if gnuplot cannot be run. The user's locale and settings do not change the picture: the
   commands are UTF-8, and -d ignores ~/.gnuplot. */
static void become_gnuplot(int input, int output, int messages)
{
    if (dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 && dup2(messages, STDERR_FILENO) >= 0 &&
        setenv("LC_ALL", "C.UTF-8", 1) == 0)
        execlp("gnuplot", "gnuplot", "-d", "-", (char *)NULL);
    _exit(127);
}

const char gnuplot_missing[] = "gnuplot is not installed; plots need it (Debian and Ubuntu: apt install gnuplot-nox)";

static bool wait_for_gnuplot(pid_t pid, char *problem, size_t size)
{
    int how = 0;
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0)
        return true;
    snprintf(problem, size, "%s",
             WIFEXITED(how) && WEXITSTATUS(how) == 127 ? gnuplot_missing : "gnuplot failed (see its messages above)");
    return false;
}

static void copy(int from, FILE *to)
{
    char block[1 << 14];
    ssize_t length;
    while ((length = read(from, block, sizeof block)) > 0 || (length < 0 && errno == EINTR))
        if (length > 0)
            fwrite(block, 1, (size_t)length, to);
}

static bool run(FILE *commands, FILE *picture, FILE *messages, char *problem, size_t size)
{
    int ends[2];
    if (pipe(ends) != 0) {
        snprintf(problem, size, "cannot create a pipe: %s", strerror(errno));
        return false;
    }
    pid_t pid = fork();
    if (pid == 0)
        become_gnuplot(fileno(commands), ends[1], fileno(messages));
    if (pid < 0)
        snprintf(problem, size, "cannot start gnuplot: %s", strerror(errno));
    close(ends[1]);
    copy(ends[0], picture);
    close(ends[0]);
    bool is_drawn = pid > 0 && wait_for_gnuplot(pid, problem, size);
    if (!is_drawn && lseek(fileno(messages), 0, SEEK_SET) == 0)
        copy(fileno(messages), stderr);
    return is_drawn;
}

bool gnuplot_run(const drawing_plan *plan, const series_set *set, FILE *picture, char *problem, size_t size)
{
    FILE *commands = tmpfile(), *messages = tmpfile();
    bool is_written = false;
    if (commands && messages) {
        drawing_write(commands, plan, set);
        is_written = fflush(commands) == 0 && !ferror(commands) && fseek(commands, 0, SEEK_SET) == 0;
    }
    if (!is_written)
        snprintf(problem, size, "cannot write a temporary file: %s", strerror(errno ? errno : EIO));
    bool is_drawn = is_written && fflush(picture) == 0 && run(commands, picture, messages, problem, size);
    if (commands)
        fclose(commands);
    if (messages)
        fclose(messages);
    return is_drawn;
}
