#include "engine/measure/suspension.h"

#include "engine/base/readings.h"

int64_t weir__machine_asleep_ns(void)
{
    int64_t boot_ns = weir__readings_get()->boot_ns();
    return boot_ns < 0 ? 0 : boot_ns - weir_clock_ns();
}

static int64_t explained_ns(const weir_thread_kernel_stats *now, const weir_thread_kernel_stats *before)
{
    const weir_pool_metrics *last = &now->counted, *first = &before->counted;
    return last->run_delay_ns < 0 ? 0 : last->run_delay_ns + last->cpu_ns - first->run_delay_ns - first->cpu_ns;
}

/*
 * There are three reasons why a thread is late. It has worked, it has waited for a CPU (the kernel counts this as
 * run-queue delay), or its process was stopped. If the kernel does not count run-queue delay, a thread that is late
 * by a whole heartbeat was stopped. Each call continues where the one before ended, so that no time is missed or
 * counted twice.
 */
void weir__suspension_note_at(weir__suspension *own, int64_t due_ns, int64_t now_ns)
{
    int64_t late_ns = now_ns - (due_ns > own->noted_ns ? due_ns : own->noted_ns), since_ns = now_ns - own->noted_ns;
    own->noted_ns = now_ns;
    if (now_ns - own->service_read_ns < WEIR_HEARTBEAT_NS) /* so not late either; a reading takes 20 us */
        return;
    weir_thread_kernel_stats now;
    weir__kernel_stats_of_thread(0, &now);
    int64_t known_ns = explained_ns(&now, &own->service);
    if (late_ns >= WEIR_HEARTBEAT_NS && known_ns < late_ns / 2) {
        own->suspended_ns += late_ns - known_ns;
        own->not_taken_ns += since_ns;
    }
    own->service = now;
    own->service_read_ns = now_ns;
}

void weir__suspension_note_start(weir__suspension *own)
{
    own->noted_ns = weir_clock_ns();
}

void weir__suspension_note(weir__suspension *own, int64_t due_ns)
{
    int64_t asleep_ns = weir__machine_asleep_ns();
    if (asleep_ns - own->asleep_ns > WEIR_HEARTBEAT_NS)
        own->suspended_ns += asleep_ns - own->asleep_ns;
    own->asleep_ns = asleep_ns;
    weir__suspension_note_at(own, due_ns, weir_clock_ns());
}

int64_t weir__suspension_take(weir__suspension *own, int64_t *until_ns)
{
    int64_t suspended_ns = own->not_taken_ns;
    own->not_taken_ns = 0;
    *until_ns = own->noted_ns;
    return suspended_ns;
}
