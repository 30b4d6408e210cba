/* weir frames DIR -o FOLDER: samples many files, several concurrently, to an array or to pictures for each of them. */
#ifndef TOOLS_FRAMES_FRAME_FOLDER_H
#define TOOLS_FRAMES_FRAME_FOLDER_H

#include "tools/frames/frame_output.h"
#include "tools/record/record_settings.h"

typedef struct frame_folder {
    const record_settings *settings; /* inputs, sampling, concurrency */
    const char *path;                /* of the folder, made if it is missing */
    frame_format format;             /* NPY: FILE.npy; PNG: FILE/0000.png */
    bool force;
} frame_folder;

/*
 * Writes what is sampled of "a/clip.mp4" in the only input folder as "a/clip.mp4.npy" or "a/clip.mp4/%04d.png"; with
 * several inputs, names begin with the path of the input. Names are made from the items' identities (frame_name.h); where
 * two of the inputs would get one name, nothing is decoded. Failures are logged and do not end the run. The last line
 * on stderr says how many files were written. Returns the exit status, as weir record does.
 */
int frame_folder_write(const frame_folder *job);

#endif
