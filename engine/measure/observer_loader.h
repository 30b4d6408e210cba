/* The observers that WEIR_RECORD and WEIR_TRACE ask for. */
#ifndef ENGINE_MEASURE_OBSERVER_LOADER_H
#define ENGINE_MEASURE_OBSERVER_LOADER_H

#include <weir/observer.h>

enum { AUTOSTART_OBSERVERS = 2 };

/* weir__autostart_observers() of libweir-export. */
typedef size_t autostart_function(weir_observer *observers, size_t room);

/* For a pipeline that is built: writes up to AUTOSTART_OBSERVERS, and returns how many. What fails is logged. */
size_t weir__autostart(weir_observer *observers);

#endif
