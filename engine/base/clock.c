#include <weir/clock.h>

#include "engine/base/readings.h"

int64_t weir_clock_ns(void)
{
    return weir__readings_get()->clock_ns();
}
