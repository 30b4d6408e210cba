/* The ready-made stages of weir::stages, all of them. */
#ifndef WEIR_STAGES_H
#define WEIR_STAGES_H

#include <weir/allocator.h>
#include <weir/arrays.h>
#include <weir/audio.h>
#include <weir/bytes.h>
#include <weir/cache.h>
#include <weir/collate.h>
#include <weir/decode_cost.h>
#include <weir/decoder_config.h>
#include <weir/files.h>
#include <weir/headspace.h>
#include <weir/image.h>
#include <weir/input_config.h>
#include <weir/picture_config.h>
#include <weir/probe.h>
#include <weir/tar.h>
#include <weir/video.h>
#include <weir/video_reader.h>
#include <weir/video_reader_pool.h>

#endif
