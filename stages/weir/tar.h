/*
 * The tar stage: the input is paths of archives, the output is the files in them, in memory.
 *
 * In: an item whose data is the path of a tar archive (a char *). The archive is plain or compressed with gzip,
 * bzip2, xz, zstd or lz4. weir_directory_source with .glob = "*.tar" and weir_list_source make such items. Out: one
 * item for each file in the archive, for decode stages. Its data is a weir_bytes * (freed with weir_bytes_free()),
 * with the name of the file in the archive. Its label is "archive!name", and its size_bytes is all the memory it
 * takes. Its number consists of that of the archive and that of the file in it (weir_task_set_number()). Files of the
 * same name are separate items.
 *
 * The archive is read as a stream, one file at a time, with back-pressure: memory use does not depend on its size.
 * Each slot of the stage reads one archive; reading blocks, so give the stage separate threads
 * (weir_stage_options.threads).
 *
 * It is a stage and not a source. So a bad archive is one failed task with its path, and not the end of the run.
 * WEIR_ENOTFOUND: it is missing, or no file in it matches. WEIR_EDATA: it is not a tar archive, or damaged; the files
 * before the damage have been delivered. WEIR_ELIMIT: files over max_bytes were skipped; all others have been
 * delivered. Other failures are WEIR_EACCESS, WEIR_EIO and WEIR_ENOMEM.
 */
#ifndef WEIR_TAR_H
#define WEIR_TAR_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/bytes.h>
#include <weir/files.h>
#include <weir/op.h>
#include <weir/pipeline.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Setting this struct to all-zero is equivalent to defaults. Strings are copied. */
typedef struct weir_tar_config {
    /* a pattern for the files to output: "*.mp4", WEIR_VIDEO_FILES, ... (NULL = all); see weir_file_name_matches().
       Other files are skipped */
    const char *glob;
    /* the archive has the layout of WebDataset: adjacent files whose names are equal up to the first dot after the
       last slash are one sample ("a/17.mp4", "a/17.cls", "a/17.json"). Then an item is the first file of a sample that
       matches, followed by the sample's other files (weir_bytes.next); samples without a match are skipped. Names that
       begin with a dot belong to no sample */
    bool samples;
    uint64_t max_bytes; /* of one item; names count, too, if it has several files (0 = 1 GiB) */
} weir_tar_config;

/* The stage. Where weir was built without libarchive, weir_pipe_tar() refuses it with WEIR_EUNSUPPORTED. */
extern WEIR_API const weir_op weir_tar_read;

/* Adds the stage to the builder; see weir_builder_pipe(). */
static inline void weir_pipe_tar(weir_builder *builder, const weir_tar_config *config,
                                 const weir_stage_options *options)
{
    weir_builder_pipe(builder, &weir_tar_read, config, sizeof *config, options);
}

#ifdef __cplusplus
}
#endif

#endif
