/*
 * What a pool needs of a video reader that it keeps. Internal. One thread at a time for each reader.
 */
#ifndef STAGES_READER_KEPT_READER_H
#define STAGES_READER_KEPT_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <weir/video_reader.h>

/* From now on, the reader asks that function whether to stop; no other function is called. */
void weir__video_reader_bind(weir_video_reader *reader, bool (*should_stop)(void *self), void *self);

/* Also calls that one, with the same self, for each frame that the decoder returns. And the reader keeps decoded frames for further
   requests. */
void weir__video_reader_watch(weir_video_reader *reader, void (*on_frame)(void *self));

/* What the last request has cost so far, also if it failed. */
const weir_decode_cost *weir__video_reader_cost(const weir_video_reader *reader);

const char *weir__video_reader_path(const weir_video_reader *reader);

/* The regular file that is open by a path, when it was opened. False = there is none. */
bool weir__video_reader_file(const weir_video_reader *reader, struct stat *file);

/* The regular file that the reader's path names now. False = there is none. */
bool weir__video_reader_look(weir_video_reader *reader, struct stat *file);

/* Ends the request, frees its frames and those of the decoder, and sets the number to that of a new reader. False: the open file
   cannot answer further requests for selected frames, and nothing was done. */
bool weir__video_reader_rest(weir_video_reader *reader);

/* What the reader has allocated; after weir__video_reader_rest(), what it keeps. */
uint64_t weir__video_reader_bytes(const weir_video_reader *reader);

#endif
