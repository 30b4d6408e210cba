#include "gnuplot_process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child: gnuplot with the pipe's end as its input. Exits with 127 if gnuplot cannot be run. */
static void become_gnuplot(int input)
{
    if (dup2(input, STDIN_FILENO) >= 0)
        execlp("gnuplot", "gnuplot", "-", (char *)NULL);
    _exit(127);
}

static bool wait_for_gnuplot(pid_t pid, char *problem, size_t size)
{
    int how = 0;
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0)
        return true;
    snprintf(problem, size, "%s",
             WIFEXITED(how) && WEXITSTATUS(how) == 127
                 ? "gnuplot is not installed; plots need it (Debian and Ubuntu: apt install gnuplot-nox)"
                 : "gnuplot failed (see its messages above)");
    return false;
}

bool gnuplot_run(const drawing_plan *plan, const series_set *set, char *problem, size_t size)
{
    int ends[2];
    if (pipe(ends) != 0) {
        snprintf(problem, size, "cannot create a pipe: %s", strerror(errno));
        return false;
    }
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        become_gnuplot(ends[0]);
    }
    close(ends[0]);
    FILE *gnuplot = pid > 0 ? fdopen(ends[1], "w") : NULL;
    if (!gnuplot) {
        snprintf(problem, size, "cannot start gnuplot: %s", strerror(errno));
        close(ends[1]);
        return false;
    }
    signal(SIGPIPE, SIG_IGN); /* its exit status reports the error */
    drawing_write(gnuplot, plan, set);
    fclose(gnuplot);
    return wait_for_gnuplot(pid, problem, size);
}
