/* Reads numbers of the headers of bitstreams, bit by bit. Internal. Pure; safe for any bytes. */
#ifndef STAGES_READER_BITS_H
#define STAGES_READER_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct weir_bits {
    const uint8_t *data;
    size_t num, next; /* bits */
    bool is_over;     /* more were read than there are: all further ones are 0 */
} weir_bits;

/* At most 32 bits. */
uint32_t weir__bits_read(weir_bits *from, unsigned num);

bool weir__bits_flag(weir_bits *from);

/* An Exp-Golomb code (ue(v) of H.264, uvlc() of AV1). A value of 32 bits and more is UINT32_MAX. */
uint32_t weir__bits_golomb(weir_bits *from);

/* The same with a sign (se(v)). */
int32_t weir__bits_signed_golomb(weir_bits *from);

#endif
