/* No file of the library gets the descriptor 0, 1 or 2, which are those of others, also where a program has closed them: what
   is printed would be written into it. */
#ifndef COMMON_ABOVE_STANDARD_H
#define COMMON_ABOVE_STANDARD_H

#include <fcntl.h>
#include <unistd.h>

/* The descriptor, or another one for the same above 2, closed on exec. -1 stays -1, with errno; or there are too many. */
static inline int weir__above_standard(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return above;
}

#endif
