/*
 * Opens a path, a URL or memory as an FFmpeg container; all input goes through here. Internal. One thread at a time
 * for each input.
 *
 * FFmpeg opens no local files: weir reads them (see local_file.h), FFmpeg reads only URLs of network protocols. The
 * container's format is checked before it is opened, and containers may not open other files.
 */
#ifndef STAGES_FFMPEG_INPUT_H
#define STAGES_FFMPEG_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include <libavformat/avformat.h>

#include <weir/bytes.h>
#include <weir/item.h>
#include <weir/status.h>

#include "common/sibling.h"
#include "stages/ffmpeg/ffmpeg_log.h"
#include "stages/ffmpeg/input_rules.h"
#include "stages/ffmpeg/local_file.h"
#include "stages/ffmpeg/user_file.h"

/* Which version of a file a URL leads to, as far as its server says. */
typedef struct weir_url_version {
    char validator[WEIR_VALIDATOR_BYTES]; /* see weir__ffmpeg_log_validator(); "" = the server says nothing */
    int64_t size_bytes;                   /* -1 = unknown */
} weir_url_version;

typedef struct weir_input {
    /* of the next file to open; must not change while it is open */
    const weir_bytes *bytes;         /* NULL = the path is opened */
    weir_user_file *user;            /* the program reads it, and can seek; NULL = the path or the bytes are opened */
    const weir_entry *member;        /* of an archive, which the path names; NULL = none */
    const weir_input_config *config; /* a whole copy; headers and redirections are not data of a URL */
    bool is_read_again;              /* it may be opened again: the data of a pipe is kept */
    weir_local_host host;            /* with the same config */
    /* a version that need not be read: weir__input_open() returns WEIR_SKIP if the URL still leads to it (NULL = none) */
    const weir_url_version *known;

    /* kept from file to file */
    weir_local_file kept; /* of a pipe that may be opened again; until weir__input_forget() */

    /* of the item */
    weir_url_version version; /* when its URL was opened for the first time; if it changes later, it is another one */
    bool has_version;

    /* of the open file */
    weir_local_file file;
    size_t position; /* of the next byte in memory */
    AVIOContext *avio;
    bool is_url; /* avio is FFmpeg's */

    /* of the open URL: how long FFmpeg has waited without receiving anything for the file */
    AVIOInterruptCB interrupt;
    int64_t asked_ns; /* the last time that FFmpeg asked whether to go on; received_bytes is as of then */
    int64_t received_bytes;
    int64_t silent_ns;
    bool is_silent; /* for longer than the limit */
} weir_input;

/* For an item that is a path, a weir_entry or a weir_bytes. Sets input->bytes, and forgets the item before. Returns
   the path or name, which is valid as long as the data. */
const char *weir__input_choose(weir_input *input, const weir_item *item);

/* Gives the item's entry and the other files of its sample to a result. They become its *entry and *sidecars, which
   are NULL before. Adds their size to *memory_bytes. The result gets copies. The last result of the item gets the
   originals, unless the item has other holders. WEIR_OK; or WEIR_ENOMEM, and the result owns what it has. */
WEIR_SIBLING_API int weir__input_give(weir_item *item, bool is_last, weir_entry **entry, weir_bytes **sidecars,
                                      size_t *memory_bytes);

/* Opens the file that an item names, to give it to a process without a file system (weir__io_give()). *path is the name
   by which that process opens it, to be freed; NULL = the item names none, or out of memory. True: it is a URL. `file` is
   to be closed; if it is not open, file->fd is FFmpeg's error. */
WEIR_SIBLING_API bool weir__input_pass(weir_local_file *file, weir_local_host *host, const weir_item *item,
                                       AVIOInterruptCB interrupt, char **path);

/* The item's entry, if it is one (else *entry is NULL). Is the file still the one that was indexed? WEIR_OK, or
   WEIR_EDATA with *error filled. */
WEIR_SIBLING_API int weir__input_check(const weir_item *item, const weir_entry **entry, weir_error *error);

/* The same, for a stage that cannot decode windows of files: WEIR_EUNSUPPORTED if the entry is one. */
int weir__input_check_whole(const weir_item *item, weir_error *error);

/*
 * Opens the container; `interrupt` is called during blocking I/O. WEIR_OK; WEIR_SKIP (only with input->known); or the
 * failure with *error filled; *format is NULL then. Close the format first, then weir__input_close(), whatever the result.
 */
int weir__input_open(weir_input *input, const char *path, AVIOInterruptCB interrupt, AVFormatContext **format,
                     weir_error *error);

/* Reads a whole path or URL into memory. Does not change input->bytes and needs no close. WEIR_OK, and the caller frees
   *bytes; or the failure with *error filled: WEIR_ELIMIT if it is larger than max_bytes. */
int weir__input_load(weir_input *input, const char *path, uint64_t max_bytes, AVIOInterruptCB interrupt,
                     weir_bytes **bytes, weir_error *error);

/* After a failure to read: was it the program's function? Then fills *error, and returns its status; WEIR_OK = it was
   not. */
int weir__input_user_failure(const weir_input *input, weir_error *error);

/* What a failure to read means. AVERROR_EOF: the end of a file whose size an HTTP/1.0 server did not send.
   AVERROR(ETIMEDOUT): a URL sent no data for longer than the limit. Other errors are returned unchanged. */
int weir__input_error(const weir_input *input, int averror);

void weir__input_close(weir_input *input);

/* Frees what was kept for opening the file again. */
void weir__input_forget(weir_input *input);

void weir__input_free(weir_input *input);

#endif
