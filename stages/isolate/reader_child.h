/* The operation that answers the calls of an isolated reader, in a child process. Internal. */
#ifndef STAGES_ISOLATE_READER_CHILD_H
#define STAGES_ISOLATE_READER_CHILD_H

#include <weir/op.h>

/* The operation that a child runs for readers. Its config is a weir_video_config; its items are those of
   reader_message.h. */
extern const weir_op weir__isolated_reader_op;

#endif
