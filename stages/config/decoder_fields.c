#include "stages/config/decoder_fields.h"

#include <stdint.h>
#include <unistd.h>

#include "engine/base/kernel_files.h"
#include "stages/config/own_config.h"

#define LIMIT_FIELDS(FIELD, type) \
    FIELD(type, max_pixels, UNSIGNED, 0, UINT64_MAX) \
    FIELD(type, max_decoder_bytes, UNSIGNED, 0, UINT64_MAX) \
    FIELD(type, max_all_decoder_bytes, UNSIGNED, 0, UINT64_MAX)

/* Sound has none of these. */
#define PICTURE_FIELDS(FIELD, type) \
    FIELD(type, loop_filter, ENUM, "WEIR_LOOP_FILTER_…", WEIR_LOOP_FILTER_NONE) \
    FIELD(type, fast_decode, UNSIGNED, false, true) \
    FIELD(type, lowres, UNSIGNED, 0, WEIR_MAX_LOWRES) \
    FIELD(type, threads, UNSIGNED, 0, WEIR_MAX_DECODER_THREADS)

#define DECODER_FIELDS(FIELD, type) LIMIT_FIELDS(FIELD, type) PICTURE_FIELDS(FIELD, type)

DEFINE_STRUCT_RULES(weir__decoder_fields, weir_decoder_config, "weir_decoder_config", DECODER_FIELDS);

static const field_rule picture_fields[] = { PICTURE_FIELDS(FIELD_RULE, weir_decoder_config) };

/* Half of the memory that the process may use. */
static uint64_t default_all_bytes(void)
{
    long num_pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t machine = num_pages > 0 && page_bytes > 0 ? (uint64_t)num_pages * (uint64_t)page_bytes : UINT64_MAX;
    uint64_t group = weir__group_memory_read();
    return (group < machine ? group : machine) / 2;
}

int weir__decoder_config_own(const weir_decoder_config **decoder, size_t *decoder_size, weir_error *error)
{
    void *copy;
    int rc = weir__config_copy(&weir__decoder_fields, *decoder, *decoder_size, &copy, error);
    if (rc != WEIR_OK)
        return rc;
    weir_decoder_config *own = copy;
    if (own->max_pixels == 0)
        own->max_pixels = UINT64_C(1) << 26;
    if (own->max_pixels > INT32_MAX)
        own->max_pixels = INT32_MAX; /* FFmpeg's own limit */
    if (own->max_decoder_bytes == 0)
        own->max_decoder_bytes = UINT64_C(1) << 30;
    if (own->max_all_decoder_bytes == 0)
        own->max_all_decoder_bytes = default_all_bytes();
    *decoder = own;
    *decoder_size = sizeof *own;
    return WEIR_OK;
}

int weir__decoder_config_check_sound(const weir_decoder_config *decoder, weir_error *error)
{
    for (size_t i = 0; i < sizeof picture_fields / sizeof picture_fields[0]; i++) {
        const field_rule *rule = &picture_fields[i];
        const char *field = (const char *)decoder + rule->offset;
        for (size_t j = 0; j < rule->size_bytes; j++)
            if (field[j])
                return weir_error_set(error, WEIR_EINVAL, 0, "%s: not for sound", rule->name);
    }
    return WEIR_OK;
}

void weir__decoder_config_free(const weir_decoder_config *decoder)
{
    weir__config_free(&weir__decoder_fields, (void *)(uintptr_t)decoder);
}
