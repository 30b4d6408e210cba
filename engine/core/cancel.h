/* Failure. */
#ifndef ENGINE_CORE_CANCEL_H
#define ENGINE_CORE_CANCEL_H

#include "core.h"

/* Too many tasks of the node have failed, or its source or stage hook has. slot: whose step it was (NULL = none). */
void weir__graph_fail(weir__node *node, weir__slot *slot, weir__failure failure);

#endif
