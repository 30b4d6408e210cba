/* The observers that WEIR_RECORD and WEIR_TRACE ask for. */
#ifndef ENGINE_MEASURE_AUTOSTART_H
#define ENGINE_MEASURE_AUTOSTART_H

#include <weir/observer.h>

enum { AUTOSTART_OBSERVERS = 2 };

/* weir_autostart_observers(), see weir/sqlite.h. */
typedef size_t autostart_function(weir_observer *observers, size_t room);

/* For a pipeline that is built: writes up to AUTOSTART_OBSERVERS, and returns how many. What fails is logged. */
size_t weir__autostart(weir_observer *observers);

#endif
