#include "stats/record/parts_text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <weir/clock.h>

#include "common/utf8.h"

static void put_bytes(weir_parts_text *text, const char *bytes, size_t length)
{
    assert(text->length + length < PARTS_BYTES);
    memcpy(text->text + text->length, bytes, length);
    text->length += length;
}

/* The inside of a JSON string. Bytes that are not UTF-8 become U+FFFD. */
static void put_escaped(weir_parts_text *text, const char *string)
{
    while (*string) {
        size_t length = weir__utf8_length(string);
        unsigned char byte = (unsigned char)*string;
        if (length && byte >= ' ' && byte != '"' && byte != '\\') {
            put_bytes(text, string, length);
        } else {
            char escaped[8];
            int escaped_length = snprintf(escaped, sizeof escaped, "\\u%04x", length ? byte : 0xfffd);
            put_bytes(text, escaped, (size_t)escaped_length);
        }
        string += length ? length : 1;
    }
}

void weir__parts_put(weir_parts_text *text, const weir_item_part *part)
{
    char number[48];
    bool is_time = part->info->kind == WEIR_PART_TIME;
    put_bytes(text, text->length ? ", \"" : "{\"", text->length ? 3 : 2);
    put_escaped(text, part->info->name);
    put_bytes(text, "_time", is_time ? 5 : 0);
    put_bytes(text, "\": ", 3);
    if (part->info->kind == WEIR_PART_TEXT) {
        put_bytes(text, "\"", 1);
        put_escaped(text, part->text);
        put_bytes(text, "\"", 1);
        return;
    }
    int length = is_time ? snprintf(number, sizeof number, "%" PRId64 ".%09" PRId64, part->number / WEIR_SECOND,
                                    part->number % WEIR_SECOND)
                         : snprintf(number, sizeof number, "%" PRId64, part->number);
    put_bytes(text, number, (size_t)length);
}

const char *weir__parts_end(weir_parts_text *text)
{
    if (text->length)
        put_bytes(text, "}", 1);
    text->text[text->length] = '\0';
    return text->text;
}
