/* What user code records (weir/span.h), as events of Chrome's format: part of trace_events.c. */
#ifndef STATS_EXPORT_TRACE_USER_H
#define STATS_EXPORT_TRACE_USER_H

#include "trace_events.h"

/* A record of user code. Threads of user code get tracks after those of the pipeline. */
void weir__trace_user_add(weir_trace_events *events, const weir_trace_record *record);

/* Ends the events of the spans that are open; begins them again from there on. */
void weir__trace_user_cut(weir_trace_events *events, int64_t at_ns);
void weir__trace_user_resume(weir_trace_events *events);

#endif
