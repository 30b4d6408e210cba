#include "stages/ffmpeg/input_rules.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libavutil/avstring.h>

const char weir__input_protocols[] = "http,https,httpproxy,tls,tcp,ftp,sftp";

/* Formats that open other files without AVFormatContext.io_open; those with AVFMT_NOFILE, such as image2, rtsp and
   sap, even open the file itself. The others are listed by name, so that they fail with a clear message. */
static const char reference_formats[] =
    "hls,applehttp,dash,webm_dash_manifest,concat,imf,sdp,rtp,rtsp,sap,vobsub,avisynth,vapoursynth,image2,"
    "image2_alias_pix,image2_brender_pix,lavfi,dvdvideo";

bool weir__input_refers_to_files(const AVInputFormat *kind)
{
    return (kind->flags & AVFMT_NOFILE) || av_match_name(kind->name, reference_formats);
}

/* ---- certificates --------------------------------------------------------------------------------------------- */

/* Where systems keep the certificates that they trust. */
static const char *const system_stores[] = {
    "/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Arch */
    "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora */
    "/etc/ssl/ca-bundle.pem",             /* openSUSE */
    "/etc/ssl/cert.pem",                  /* Alpine */
};

static _Atomic(char *) fallback_store; /* set once */

const char *weir_certificates_find(void)
{
    for (size_t i = 0; i < FF_ARRAY_ELEMS(system_stores); i++)
        if (access(system_stores[i], R_OK) == 0)
            return system_stores[i];
    return atomic_load(&fallback_store);
}

int weir_certificates_set_fallback(const char *path, weir_error *error)
{
    if (!path)
        return weir_error_set(error, WEIR_EINVAL, 0, "certificates: path is NULL");
    if (access(path, R_OK) != 0)
        return weir_error_set(error, WEIR_EINVAL, -errno, "certificates: %s: %s", path, strerror(errno));
    char *copy = strdup(path), *before = NULL;
    if (!copy)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    if (atomic_compare_exchange_strong(&fallback_store, &before, copy))
        return WEIR_OK;
    free(copy);
    if (strcmp(before, path) == 0)
        return WEIR_OK;
    return weir_error_set(error, WEIR_EINVAL, 0, "certificates: %s: %s was set before", path, before);
}

/* FFmpeg's OpenSSL code does not compare the name in a certificate with the host's. */
static bool checks_names(void)
{
    return !strstr(avformat_configuration(), "--enable-openssl");
}

/* Each TLS library of FFmpeg takes these options, but only GnuTLS looks for the system's certificates itself. */
int weir__input_set_certificates(const weir_input_config *config, AVDictionary **options)
{
    bool is_checked = !(config->allow & WEIR_ALLOW_INSECURE);
    const char *store = config->ca_file ? config->ca_file : weir_certificates_find();
    int rc = av_dict_set_int(options, "tls_verify", is_checked, 0);
    if (rc >= 0 && is_checked && store)
        rc = av_dict_set(options, "ca_file", store, 0);
    if (rc >= 0 && is_checked && !checks_names())
        rc = av_dict_set(options, "protocol_blacklist", "https,tls", 0); /* also for redirections */
    return rc;
}

int weir__input_check_protocol(const weir_input_config *config, const char *protocol, weir_error *error)
{
    if ((config->allow & WEIR_ALLOW_INSECURE) || checks_names() || !av_match_name(protocol, "https,tls"))
        return WEIR_OK;
    return weir_error_set(error, WEIR_EACCESS, 0,
                          "protocol %s: this FFmpeg (with OpenSSL) does not check the host's certificate; use "
                          "--insecure (WEIR_ALLOW_INSECURE) to read it nevertheless",
                          protocol);
}
