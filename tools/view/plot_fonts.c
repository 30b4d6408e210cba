#include "tools/view/plot_fonts.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/utf8.h"
#include "tools/cli/memory.h"

enum { MAX_CHARACTER = 0x10ffff, CHARACTER_BYTES = 5 };

/* A bit for each character. */
typedef struct font_characters {
    uint8_t bits[MAX_CHARACTER / 8 + 1];
    bool are_known;
} font_characters;

static bool has_character(const font_characters *fonts, unsigned long character)
{
    bool is_invisible = (character >= 0x200b && character <= 0x200f) || (character >= 0xfe00 && character <= 0xfe0f);
    return !fonts->are_known || character < 0x80 || is_invisible || fonts->bits[character / 8] >> character % 8 & 1;
}

/* Lines of ranges, as "20-7e a0 100-17f". */
static void read_fonts(font_characters *fonts)
{
    unsigned long first, last;
    FILE *list = popen("fc-list -f '%{charset}\\n' 2>/dev/null", "r"); /* NOLINT: a fixed command */
    while (list && fscanf(list, "%lx", &first) == 1) {
        int next = fgetc(list);
        if (next != '-' || fscanf(list, "%lx", &last) != 1)
            last = first;
        for (unsigned long c = first; c <= last && c <= MAX_CHARACTER; c++)
            fonts->bits[c / 8] = (uint8_t)(fonts->bits[c / 8] | 1u << c % 8);
        fonts->are_known = true;
    }
    if (list)
        pclose(list);
}

/* The next character with its bytes in `text`, or a byte that is none; false = the end. */
static bool read_character(FILE *from, char text[CHARACTER_BYTES])
{
    int c = fgetc(from);
    size_t length = 1, wanted = c < 0xc2 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 1;
    text[0] = (char)c;
    while (c != EOF && length < wanted && (c = fgetc(from)) != EOF) {
        if (!weir__utf8_continues((unsigned char)c)) {
            ungetc(c, from);
            break;
        }
        text[length++] = (char)c;
    }
    text[length] = '\0';
    return length > 1 || c != EOF;
}

size_t plot_fonts_copy(FILE *from, FILE *to)
{
    font_characters *fonts = memory_get(1, sizeof *fonts);
    char text[CHARACTER_BYTES] = "";
    size_t num_replaced = 0;
    read_fonts(fonts);
    while (read_character(from, text)) {
        size_t length = weir__utf8_length(text);
        if (length && has_character(fonts, weir__utf8_decode(text, length))) {
            fputs(text, to);
        } else {
            fputc('?', to);
            num_replaced++;
        }
    }
    free(fonts);
    return num_replaced;
}
