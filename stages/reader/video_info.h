/* The facts about a stream that its header tells. Internal. Any thread. */
#ifndef STAGES_READER_VIDEO_INFO_H
#define STAGES_READER_VIDEO_INFO_H

#include <weir/video_reader.h>

#include "stages/decoder/decoder.h"

/* The properties of an open file. */
weir_video_info weir__video_info_of(const weir_decoder *decoder);

#endif
