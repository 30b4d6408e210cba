/* Configs in messages: a struct without its pointers, and then what each of them points to. Internal. */
#ifndef STAGES_ISOLATE_CONFIG_MESSAGE_H
#define STAGES_ISOLATE_CONFIG_MESSAGE_H

#include <stddef.h>

#include "stages/isolate/message.h"

/* What the pointers of a config lead to; the config itself was put before, as a struct. Of a received one, it is what
   they are to lead to: strings in the message's body, and copies of lists and of other configs. */
void weir__isolated_put_pointers(isolated_message *message, const struct_rules *rules, const void *config);
void weir__isolated_get_pointers(isolated_message *message, const struct_rules *rules, void *config);

/* A whole config, or NULL. The program may know fewer fields of it. What was received is freed without its inner configs. */
void weir__isolated_put_inner(isolated_message *message, const struct_rules *rules, const void *given,
                              size_t given_size);
void *weir__isolated_get_inner(isolated_message *message, const struct_rules *rules);
void weir__isolated_free_config(const struct_rules *rules, void *config);

#endif
