/* The names of the files that weir frames writes into a folder: one for each identity. */
#ifndef TOOLS_FRAMES_FRAME_NAME_H
#define TOOLS_FRAMES_FRAME_NAME_H

#include <weir/item.h>

/*
 * The name below the output folder, without an extension; to be freed. `root` and the slash behind it are left out where the
 * address begins with them ("" = nothing is).
 *
 * Different identities have different names, except that slashes at the start and empty components of a path are ignored.
 * The components "." and ".." become "_" and "__", and a component of underscores gets two more. A component that is too
 * long for a file system is cut and gets a digest. If the number among equal items is not 0, it follows a "~".
 */
char *frame_name_of(weir_identity identity, const char *root);

#endif
