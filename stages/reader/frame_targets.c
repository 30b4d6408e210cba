#include "stages/reader/frame_targets.h"

#include <stdlib.h>

#include <weir/status.h>

static int compare_targets(const void *a, const void *b)
{
    const weir_target *left = a;
    const weir_target *right = b;
    if (left->frame != right->frame)
        return left->frame < right->frame ? -1 : 1;
    return left->position < right->position ? -1 : 1;
}

int weir__frame_targets_set(weir_frame_targets *targets, const weir_selection *selection)
{
    targets->all = calloc(selection->num_indices, sizeof *targets->all);
    if (!targets->all)
        return WEIR_ENOMEM;
    targets->num = selection->num_indices;
    targets->is_in_order = true;
    for (size_t i = 0; i < targets->num; i++) {
        targets->all[i] =
            (weir_target){ .frame = selection->indices[i], .position = i, .is_repeat = selection->is_repeat[i] };
        targets->is_in_order &= i == 0 || selection->indices[i] >= selection->indices[i - 1];
    }
    if (!targets->is_in_order)
        qsort(targets->all, targets->num, sizeof *targets->all, compare_targets);
    return WEIR_OK;
}

unsigned weir__frame_targets_take(weir_frame_targets *targets)
{
    size_t first = targets->next;
    for (; targets->next < targets->num; targets->next++) {
        if (targets->all[targets->next].frame != targets->all[first].frame)
            break;
        targets->all[targets->next].has_come = true;
    }
    return (unsigned)(targets->next - first);
}

void weir__frame_targets_drop_kept(weir_frame_targets *targets)
{
    for (size_t i = 0; i < targets->num; i++)
        av_frame_free(&targets->all[i].kept);
}

void weir__frame_targets_forget(weir_frame_targets *targets)
{
    weir__frame_targets_drop_kept(targets);
    free(targets->all);
    *targets = (weir_frame_targets){ .num_missing = targets->num_missing };
}

typedef struct placed {
    size_t position;
    size_t number;
} placed;

static int compare_placed(const void *a, const void *b)
{
    const placed *left = a;
    const placed *right = b;
    return left->position < right->position ? -1 : left->position > right->position;
}

int weir__frame_targets_order(const weir_frame_targets *targets, size_t num_frames, size_t **order)
{
    *order = NULL;
    if (!targets->all || targets->is_in_order)
        return WEIR_OK;
    placed *frames = calloc(num_frames, sizeof *frames);
    *order = calloc(num_frames, sizeof **order);
    size_t num_placed = 0;
    for (size_t i = 0; frames && *order && i < targets->num && num_placed < num_frames; i++) {
        if (targets->all[i].has_come) {
            frames[num_placed] = (placed){ .position = targets->all[i].position, .number = num_placed };
            num_placed++;
        }
    }
    if (!frames || !*order) {
        free(frames);
        free(*order);
        *order = NULL;
        return WEIR_ENOMEM;
    }
    qsort(frames, num_placed, sizeof *frames, compare_placed);
    for (size_t i = 0; i < num_placed; i++)
        (*order)[i] = frames[i].number;
    free(frames);
    return WEIR_OK;
}
