#include "stages/config/input_fields.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <weir/clock.h>

#include "stages/config/own_config.h"

#define INPUT_FIELDS(FIELD, type) \
    FIELD(type, allow, ENUM, "WEIR_ALLOW_…", WEIR_ALLOW_PIPES | WEIR_ALLOW_INSECURE) \
    FIELD(type, io_thread, SIGNED, INT32_MIN, INT32_MAX) \
    FIELD(type, io_timeout_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(type, ca_file, STRING, 0, 0) \
    FIELD(type, max_pipe_bytes, UNSIGNED, 0, UINT64_MAX)

DEFINE_STRUCT_RULES(weir__input_fields, weir_input_config, "weir_input_config", INPUT_FIELDS);

static int check_certificates(const weir_input_config *input, weir_error *error)
{
    if (!input->ca_file)
        return WEIR_OK;
    if (input->allow & WEIR_ALLOW_INSECURE)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "ca_file (--ca-file) cannot be combined with WEIR_ALLOW_INSECURE (--insecure)");
    if (access(input->ca_file, R_OK) != 0)
        return weir_error_set(error, WEIR_EINVAL, -errno, "ca_file (--ca-file): %s: %s", input->ca_file,
                              strerror(errno));
    return WEIR_OK;
}

int weir__input_config_own(const weir_input_config **input, size_t *input_size, weir_error *error)
{
    void *copy;
    int rc = weir__config_copy(&weir__input_fields, *input, *input_size, &copy, error);
    if (rc != WEIR_OK)
        return rc;
    weir_input_config *own = copy;
    rc = check_certificates(own, error);
    if (rc != WEIR_OK) {
        weir__config_free(&weir__input_fields, copy);
        return rc;
    }
    if (own->io_timeout_ns == 0)
        own->io_timeout_ns = 30 * WEIR_SECOND;
    if (own->max_pipe_bytes == 0)
        own->max_pipe_bytes = UINT64_C(4) << 30;
    *input = own;
    *input_size = sizeof *own;
    return WEIR_OK;
}

void weir__input_config_free(const weir_input_config *input)
{
    weir__config_free(&weir__input_fields, (void *)(uintptr_t)input);
}
