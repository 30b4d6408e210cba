#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <weir/output.h>

/* The lowest free descriptor is taken, so they are opened in their order. For the other direction than theirs: what reads or
   writes them then fails with EBADF, as if they were closed, and is not silently lost. */
void weir_standard_files_open(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_NOCTTY);
}
