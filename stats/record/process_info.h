/* What `run` records of the process. */
#ifndef STATS_RECORD_PROCESS_INFO_H
#define STATS_RECORD_PROCESS_INFO_H

#include "common/sibling.h"

/* The host's name, "" if not known. Freed by the caller; NULL = out of memory. */
WEIR_SIBLING_API char *weir__host_name(void);

/* The given command line (NULL = that of the process, quoted for a shell, "" if not known), without the secrets of URLs.
   Freed by the caller; NULL = out of memory. */
WEIR_SIBLING_API char *weir__command_line(const char *given);

/* System, CPUs and memory, in one line; "" if not known. Freed by the caller; NULL = out of memory. */
char *weir__machine_text(void);

#endif
