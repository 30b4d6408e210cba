/* The comment in the header of a compressed trace (gzip, RFC 1952): it is known as one without being unpacked. */
#ifndef COMMON_GZIP_COMMENT_H
#define COMMON_GZIP_COMMENT_H

#define WEIR__TRACE_COMMENT "weir trace"

#endif
