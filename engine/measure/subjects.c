#include "engine/measure/subjects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sink's queue has latencies, too. */
static void add_node(weir__subjects *subjects, weir_node *node)
{
    bool is_stage = strcmp(node->kind, "stage") == 0;
    weir__subject *next = &subjects->all[node->subject = subjects->count];
    *next++ = (weir__subject){ .subject = is_stage ? WEIR_SUBJECT_STAGE : WEIR_SUBJECT_FLOW,
                               .name = node->name,
                               .kind = node->kind,
                               .num_times = 1 };
    for (uint32_t i = 0; i < node->core.num_outs; i++) {
        const weir__queue *queue = &node->core.outs[i];
        *next++ = (weir__subject){ .subject = WEIR_SUBJECT_QUEUE,
                                   .name = queue->name,
                                   .kind = "queue",
                                   .capacity = queue->capacity,
                                   .num_times = queue == node->pipeline->core.sink ? 3 : 2 };
    }
    subjects->count += 1 + node->core.num_outs;
}

static void add_pool(weir__subjects *subjects, weir_pool *pool)
{
    pool->subject = subjects->count;
    subjects->all[subjects->count++] = (weir__subject){
        .subject = WEIR_SUBJECT_POOL, .name = pool->name, .kind = "pool", .threads = &pool->num_wanted
    };
}

static void add_process_and_machine(weir__subjects *subjects, const weir_pipeline *pipeline)
{
    snprintf(subjects->process_name, sizeof subjects->process_name, "%u:process", pipeline->id);
    snprintf(subjects->machine_name, sizeof subjects->machine_name, "%u:machine", pipeline->id);
    subjects->all[subjects->count++] = (weir__subject){ .subject = WEIR_SUBJECT_PROCESS,
                                                        .name = subjects->process_name,
                                                        .kind = "process",
                                                        .capacity = pipeline->num_cpus };
    subjects->all[subjects->count++] =
        (weir__subject){ .subject = WEIR_SUBJECT_MACHINE, .name = subjects->machine_name, .kind = "machine" };
}

int weir__subjects_init(weir__subjects *subjects, weir_pipeline *pipeline)
{
    size_t most = pipeline->core.num_nodes + (size_t)pipeline->num_queues + pipeline->num_pools + 2;
    subjects->all = calloc(most, sizeof *subjects->all);
    if (!subjects->all)
        return WEIR_ENOMEM;
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++)
        add_node(subjects, pipeline->nodes[i]);
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        add_pool(subjects, pipeline->pools[i]);
    add_process_and_machine(subjects, pipeline);
    for (uint32_t i = 0; i < subjects->count; i++) {
        subjects->all[i].first_time = subjects->num_times;
        subjects->num_times += subjects->all[i].num_times;
    }
    subjects->num_times++;
    return WEIR_OK;
}

void weir__subjects_destroy(weir__subjects *subjects)
{
    free(subjects->all);
}
