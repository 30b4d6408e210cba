/* The observers that WEIR_RECORD, WEIR_TRACE and WEIR_STACKS ask for. */
#ifndef ENGINE_MEASURE_OBSERVER_LOADER_H
#define ENGINE_MEASURE_OBSERVER_LOADER_H

#include <weir/observer.h>

enum { AUTOSTART_OBSERVERS = 3 };

/* weir__autostart_observers() of libweir-export. */
typedef size_t autostart_function(weir_observer *observers, size_t room);

/* For a pipeline that is built: writes up to AUTOSTART_OBSERVERS, and returns how many. What fails is logged. */
size_t weir__autostart(weir_observer *observers);

#endif
