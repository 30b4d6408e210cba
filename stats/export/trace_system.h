/* Counters of this process and machine, for traces. */
#ifndef WEIR_TRACE_SYSTEM_H
#define WEIR_TRACE_SYSTEM_H

#include "trace_events.h"

typedef struct weir_trace_system {
    int64_t at_ns; /* of the last reading; 0 = none */
    int64_t cpu_ns, read_bytes, written_bytes, received_bytes, sent_bytes, minor_faults, major_faults;
} weir_trace_system;

/* Adds memory in MiB, and the rates since the last call: CPU in cores, disk and network in MiB/s, page faults per
   second. */
void weir_trace_system_add(weir_trace_system *system, weir_trace_events *events, int64_t now_ns);

/* The run, or the file, ends: the last rates, then 0, since viewers draw a value up to the end of the file. */
void weir_trace_system_end(weir_trace_system *system, weir_trace_events *events, int64_t now_ns);

#endif
