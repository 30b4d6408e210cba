/* The key of identities, which makes those of several runs comparable: see weir_identity_set_key(). */
#ifndef TOOLS_RECORD_IDENTITY_KEY_H
#define TOOLS_RECORD_IDENTITY_KEY_H

#include <stddef.h>

/*
 * Sets the user's key if an address has a hidden value that may say which object is meant ("?key=clips/1.mp4"); else it does
 * nothing. The key is in weir/identity-key below $XDG_STATE_HOME (~/.local/state), for its owner only, and is made when it
 * is missing; so it is never in a database. Where it cannot be read or made, a line on stderr says so, and the key is
 * one of this run. Such files are then read again by a later weir index, and by --resume.
 */
void identity_key_load(const char *const *addresses, size_t num_addresses);

#endif
