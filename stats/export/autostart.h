/* What the environment asks for: see docs/tracing.md. */
#ifndef STATS_EXPORT_AUTOSTART_H
#define STATS_EXPORT_AUTOSTART_H

#include <stddef.h>

#include <weir/observer.h>

/*
 * Found by the engine by its name, for each pipeline that is built if one of the variables is set. Writes the observers, at most
 * `room`, and returns how many; they have no `attach`, and close what they write to when they are detached. What fails is
 * logged. Any thread.
 */
WEIR_API size_t weir__autostart_observers(weir_observer *observers, size_t room);

#endif
