/* A file that the program reads itself (weir_file_functions), with read and seek functions for FFmpeg. Internal. One thread at
   a time for each file. */
#ifndef STAGES_FFMPEG_USER_FILE_H
#define STAGES_FFMPEG_USER_FILE_H

#include <stdint.h>

#include <weir/bytes.h>
#include <weir/status.h>

typedef struct weir_user_file {
    weir_file_functions functions; /* read = NULL: none */
    int64_t position;              /* of the next byte; -1 = unknown, until the first rewind */
    /* Where the program's file is, if several read it, each from its own position; -1 = unknown. NULL = only this one
       reads it. */
    int64_t *place;
    int failure; /* the program's first status that was not WEIR_OK, since the last rewind */
} weir_user_file;

/* To the first byte. WEIR_OK, or the program's failure with *error filled. */
int weir__user_file_rewind(weir_user_file *file, weir_error *error);

/* Reads the whole file, which is at its first byte. WEIR_OK, and the caller frees *bytes; or the failure with *error filled:
   WEIR_ELIMIT if it is larger than max_bytes. */
int weir__user_file_load(weir_user_file *file, uint64_t max_bytes, weir_bytes **bytes, weir_error *error);

/* For a failure of FFmpeg's: was it the program's? Then fills *error, and returns its status; WEIR_OK = it was not. */
int weir__user_file_failure(const weir_user_file *file, weir_error *error);

/* `self` is the file. Bytes, or FFmpeg's error. */
int weir__user_file_read(void *self, uint8_t *to, int max_bytes);
int64_t weir__user_file_seek(void *self, int64_t offset, int whence);

#endif
