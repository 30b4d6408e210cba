#include "tools/record/input_options.h"

#include <weir/input_config.h>

static bool parse_insecure(const char *text, void *value)
{
    (void)text;
    *(uint32_t *)value |= WEIR_ALLOW_INSECURE;
    return true;
}

static const option_kind insecure_flag = { .parse = parse_insecure, .wanted = "" };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(weir_input_config, what)

const option_row input_rows[] = {
    { ROW("io-timeout", io_timeout_ns, option_duration), .heading = "Input", .argument = "SPAN",
      .help = "fail if a URL sends no data for SPAN (default 30s)" },
    { ROW("ca-file", ca_file, option_file), .argument = "FILE",
      .help = "trust the certificates in FILE (PEM) for https, instead of the system's" },
    { ROW("insecure", allow, insecure_flag), .excludes = "ca-file",
      .help = "do not check the certificates of https servers" },
    { 0 },
};
