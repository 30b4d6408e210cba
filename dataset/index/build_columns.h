/* Writes the user's columns of a list into the index. Private to this room; on the thread that called weir_dataset_build(). */
#ifndef DATASET_INDEX_BUILD_COLUMNS_H
#define DATASET_INDEX_BUILD_COLUMNS_H

#include "dataset/index/build_writer.h"

/* May options->columns be columns of an index? Other names that it has are refused when they are written. */
int weir__build_check_columns(const weir_dataset_build_options *options, weir_error *error);

/* Writes those of the list: changes the table, if they are other columns than before, and the rows whose values differ. Within a
   transaction; the pipeline has ended. WEIR_OK, or the failure with *self->error filled. */
int weir__build_put_columns(index_build *self);

#endif
