#ifndef WEIR_MAKE_FOLDER_H
#define WEIR_MAKE_FOLDER_H

/* Creates a folder and its parents unless they exist. 0 or an errno value. */
int weir_make_folder(const char *folder);

#endif
