#include "dataset/index/memory_index.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataset/index/index_file.h"

struct weir_dataset_memory {
    sqlite3 *db; /* the connection that has built the index: while it is open, the memory stays */
    char name[80];
};

/* A program may contain several copies of this library, so a number alone is not enough. */
static atomic_uint num_made;

int weir__memory_index_new(weir_dataset_memory **to, sqlite3 **db, weir_error *error)
{
    *to = NULL;
    *db = NULL;
    weir_dataset_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    snprintf(memory->name, sizeof memory->name, "file:/weir-index-%p-%u?vfs=memdb", (void *)&num_made,
             atomic_fetch_add(&num_made, 1));
    int rc = weir__index_create_shared(memory->name, &memory->db, WEIR__MEMORY_INDEX_NAME, error);
    if (rc != WEIR_OK) {
        free(memory);
        return rc;
    }
    *db = memory->db;
    *to = memory;
    return WEIR_OK;
}

int weir__memory_index_open(const weir_dataset_memory *memory, sqlite3 **db, weir_error *error)
{
    return weir__index_open_shared(memory->name, db, WEIR__MEMORY_INDEX_NAME, error);
}

void weir_dataset_memory_free(weir_dataset_memory *memory)
{
    if (!memory)
        return;
    sqlite3_close(memory->db);
    free(memory);
}
