/*
 * What a config may say of an input, and what it allows: the defaults, network protocols, formats of containers, and
 * certificates. Internal. No state: any thread.
 */
#ifndef STAGES_FFMPEG_INPUT_CONFIG_H
#define STAGES_FFMPEG_INPUT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include <libavformat/avformat.h>

#include <weir/clock.h>
#include <weir/status.h>

/* The default of io_timeout_ns. */
#define WEIR_INPUT_TIMEOUT_NS (30 * WEIR_SECOND)

/* The default of max_pipe_bytes. */
#define WEIR_INPUT_PIPE_BYTES (UINT64_C(4) << 30)

/* Checks these fields of a config (flags of WEIR_ALLOW_…, a file that can be read), and copies *ca_file, which the caller
   frees with weir__input_config_free(). */
int weir__input_config_init(unsigned allow, const char **ca_file, weir_error *error);
void weir__input_config_free(const char **ca_file);

/* Protocols that FFmpeg may open: none of these reads local files or inherited descriptors. */
extern const char weir__input_protocols[];

/* Is it a format of files that name other files, which would be opened? */
bool weir__input_refers_to_files(const AVInputFormat *kind);

/* The system's file of certificates; NULL = none. */
const char *weir__input_find_certificates(void);

/* Adds FFmpeg's options for the certificates of hosts, also of those that a URL is redirected to. A failure is FFmpeg's
   error. */
int weir__input_set_certificates(unsigned allow, const char *ca_file, AVDictionary **options);

/* WEIR_OK, or WEIR_EACCESS: the protocol has certificates, which this FFmpeg cannot check as `allow` wants it. */
int weir__input_check_protocol(unsigned allow, const char *protocol, weir_error *error);

#endif
