#include "tools/record/decoder_options.h"

#include <weir/decoder_config.h>

static const char *const loop_filter_names[] = { "all", "references", "keyframes", "none", NULL }; /* as the enum */

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(weir_decoder_config, what)

const option_row decoder_rows[] = {
    { ROW("loop-filter", loop_filter, option_choice), .heading = "Decoding", .excludes = "audio images",
      .argument = "FRAMES", .choices = loop_filter_names,
      .help = "cheaper, less accurate: apply the codec's loop filter to all frames (the default), only to references "
              "(errors do not spread), only to keyframes, or to none" },
    { ROW("fast-decode", fast_decode, option_flag), .excludes = "audio images",
      .help = "cheaper, less accurate: take shortcuts that the codec's standard does not allow" },
    { ROW("lowres", lowres, option_count8), .excludes = "audio", .argument = "N", .max = WEIR_MAX_LOWRES,
      .help = "cheaper, less accurate: decode at 1/2 (1), 1/4 (2) or 1/8 (3) of the size, where the codec can (JPEG, "
              "MPEG-1 to -4; not H.264, HEVC, VP9, AV1)" },
    { ROW("decode-threads", threads, option_count8), .excludes = "audio images", .argument = "N",
      .max = WEIR_MAX_DECODER_THREADS,
      .help = "threads that decode and scale each file (default 1): for one long file at a time; for many files, "
              "--concurrency needs less work" },
    { ROW("max-pixels", max_pixels, option_count), .excludes = "audio", .argument = "N",
      .help = "fail if the file's pictures have more than N pixels (default 67108864)" },
    { ROW("max-decoder-bytes", max_decoder_bytes, option_bytes), .argument = "SIZE",
      .help = "fail if the decoder's frames would take more memory than SIZE (default 1G)" },
    { 0 },
};
