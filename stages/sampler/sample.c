#include <weir/sample.h>

#include <stdlib.h>
#include <string.h>

weir_sample *weir_sample_new(void)
{
    weir_sample *sample = malloc(sizeof *sample);
    if (sample)
        *sample = (weir_sample){ .class_id = -1, .size_bytes = -1 };
    return sample;
}

size_t weir_sample_memory(const weir_sample *sample)
{
    return sample ? sizeof *sample + (sample->path ? strlen(sample->path) + 1 : 0) + sample->packets_bytes : 0;
}

void weir_sample_free(weir_sample *sample)
{
    if (!sample)
        return;
    free(sample->path);
    free(sample->packets);
    free(sample);
}

void weir_sample_release(void *data, void *self)
{
    (void)self;
    weir_sample_free(data);
}
