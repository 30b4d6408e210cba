/* One clock: monotonic nanoseconds. Wall time is for timestamps only. */
#ifndef WEIR_CLOCK_H
#define WEIR_CLOCK_H

#include <stdint.h>

#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_MICROSECOND INT64_C(1000)
#define WEIR_MILLISECOND INT64_C(1000000)
#define WEIR_SECOND      INT64_C(1000000000)
#define WEIR_FOREVER     INT64_C(-1) /* no timeout */

/* Monotonic time. Any thread. */
WEIR_API int64_t weir_clock_ns(void);

#ifdef __cplusplus
}
#endif

#endif
