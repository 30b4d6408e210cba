/* What `run` records of the process. */
#ifndef WEIR_PROCESS_H
#define WEIR_PROCESS_H

/* The host's name, "" if the system does not tell. To be freed; NULL = out of memory. */
char *weir_host_name(void);

/* The command line as a shell would take it, "" if the system does not tell. To be freed; NULL = out of memory. */
char *weir_command_line(void);

/* System, CPUs and memory, in one line; "" if the system does not tell. To be freed; NULL = out of memory. */
char *weir_machine_text(void);

#endif
