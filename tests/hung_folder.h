/*
 * A folder on a file system in user space (FUSE) that stops answering when it is asked for something, and goes on later.
 * Linux only; speaks the kernel's protocol, so it needs no library. One at a time.
 */
#ifndef TESTS_HUNG_FOLDER_H
#define TESTS_HUNG_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Mounts it at `point`, an empty folder, for this process and those that it starts: files 2.mp4, 3.mp4, … with these
   bytes, which must stay; it cannot be listed. False, with the reason on stderr: not allowed here. */
bool hung_folder_mount(const char *point, unsigned num_files, const void *bytes, size_t num_bytes);
void hung_folder_unmount(void);

/* It stops answering at the next request of this kind (FUSE_READ, …) for this file, its number. Waits until
   all files are closed. */
void hung_folder_hang_at(uint32_t opcode, uint64_t file);
void hung_folder_await_hanging(void);
void hung_folder_go_on(void);

#endif
