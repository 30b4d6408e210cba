#include "stages/reader/bits.h"

uint32_t weir__bits_read(weir_bits *from, unsigned num)
{
    uint32_t value = 0;
    if (num > from->num - from->next) {
        from->is_over = true;
        from->next = from->num;
        return 0;
    }
    for (unsigned i = 0; i < num; i++, from->next++)
        value = value << 1 | (from->data[from->next / 8] >> (7 - from->next % 8) & 1u);
    return value;
}

bool weir__bits_flag(weir_bits *from)
{
    return weir__bits_read(from, 1);
}

uint32_t weir__bits_golomb(weir_bits *from)
{
    unsigned num_zeros = 0;
    while (!from->is_over && !weir__bits_flag(from))
        num_zeros++;
    if (num_zeros >= 32)
        return UINT32_MAX;
    return (UINT32_C(1) << num_zeros) - 1 + weir__bits_read(from, num_zeros);
}

int32_t weir__bits_signed_golomb(weir_bits *from)
{
    uint32_t code = weir__bits_golomb(from);
    int64_t value = ((int64_t)code + 1) / 2;
    return (int32_t)(code % 2 ? value > INT32_MAX ? INT32_MAX : value : -value);
}
