/*
 * Where a file's bytes come from: a path, a URL or memory, opened as an FFmpeg container. Internal. One thread at a time
 * for each input.
 */
#ifndef WEIR_STAGES_INPUT_H
#define WEIR_STAGES_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include <libavformat/avformat.h>

#include <weir/bytes.h>
#include <weir/clock.h>
#include <weir/item.h>
#include <weir/status.h>

/* The default of io_timeout_ns. */
#define WEIR_INPUT_TIMEOUT_NS (30 * WEIR_SECOND)

typedef struct weir_input {
    /* of the next file to open, and not to be changed while it is */
    const weir_bytes *bytes; /* NULL = the path is opened */
    int64_t timeout_ns;      /* without any data from a URL; ≤ 0 = wait for ever */

    /* kept from file to file */
    char *url;
    size_t max_url_bytes;

    /* of the open file */
    AVIOContext *memory; /* NULL = the bytes come from elsewhere */
    size_t position;     /* of the next byte of it */
} weir_input;

/* Of an item that is a path or a weir_bytes: sets input->bytes, and returns what to open and to call it by; lives as
   long as the data. */
const char *weir_input_choose(weir_input *input, const weir_item *item);

/* What hangs on the item's data is moved to *sidecars, and its size added to *memory_bytes. */
void weir_input_take_sidecars(const weir_item *item, weir_bytes **sidecars, size_t *memory_bytes);

/*
 * Opens the container; `interrupt` is asked inside blocking I/O. WEIR_OK, or the failure with *error filled; *format is
 * NULL then. Close the format first, then weir_input_close(), whatever the result.
 */
int weir_input_open(weir_input *input, const char *path, AVIOInterruptCB interrupt, AVFormatContext **format,
                    weir_error *error);

/* Reads all of a path or URL into memory. Neither changes input->bytes nor needs a close. WEIR_OK with *bytes to be freed,
   or the failure with *error filled: WEIR_ELIMIT if it is larger than max_bytes. */
int weir_input_load(weir_input *input, const char *path, uint64_t max_bytes, AVIOInterruptCB interrupt,
                    weir_bytes **bytes, weir_error *error);

void weir_input_close(weir_input *input);
void weir_input_free(weir_input *input);

#endif
