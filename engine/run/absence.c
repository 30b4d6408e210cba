#include "engine/run/absence.h"

_Thread_local weir__absence weir__absence_of_thread;

void weir__absence_forget(const weir_pipeline *pipeline)
{
    if (weir__absence_of_thread.from == pipeline)
        weir__absence_of_thread.from = NULL;
}
