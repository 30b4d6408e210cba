/* What an input may be: network protocols, formats of containers, and certificates. Internal. Any thread; the
   only state is the process's fallback for certificates. */
#ifndef STAGES_FFMPEG_INPUT_RULES_H
#define STAGES_FFMPEG_INPUT_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include <libavformat/avformat.h>

#include <weir/input_config.h>
#include <weir/status.h>

/* Protocols that FFmpeg may open: none of these reads local files or inherited descriptors. */
extern const char weir__input_protocols[];

/* Is it a format of files that name other files, which would be opened? */
bool weir__input_refers_to_files(const AVInputFormat *kind);

/* Adds FFmpeg's options for the certificates of hosts, also of those that a URL is redirected to. A failure is FFmpeg's
   error. */
int weir__input_set_certificates(const weir_input_config *config, AVDictionary **options);

/* WEIR_OK, or WEIR_EACCESS: the protocol has certificates, which this FFmpeg cannot check as the config wants it. */
int weir__input_check_protocol(const weir_input_config *config, const char *protocol, weir_error *error);

#endif
