/* The colours of pictures, as classes of a style sheet, for light and dark screens. */
#ifndef TOOLS_PICTURE_INKS_H
#define TOOLS_PICTURE_INKS_H

#include <stddef.h>
#include <stdio.h>

/* Fills: class "iN". Those of limits follow, in the order of weir_verdict_kind: INK_LIMITS + kind. */
typedef enum ink {
    INK_BUSY,
    INK_BUSY_ELSEWHERE,
    INK_INPUT,
    INK_THREAD,
    INK_TURN,
    INK_ROOM,
    INK_THROTTLED,
    INK_STOLEN,
    INK_OTHERS,
    INK_IDLE,
    INK_EMPTY, /* a queue */
    INK_FULL,
    INK_PHASES, /* tints; NUM_TINTS of them */
    INK_PHASES_END = INK_PHASES + 5,
    INK_LIMITS = INK_PHASES_END,
} ink;
enum { NUM_TINTS = INK_PHASES_END - INK_PHASES };

/* Curves: class "cN" has the colour, "dN" the dashes. Together they distinguish this number of curves. */
enum { NUM_CURVE_COLOURS = 7, NUM_CURVE_DASHES = 3 };

/* The style sheet of all pictures of a page or an SVG file. A picture is in an element of the class "weir". */
void inks_write_style(FILE *out);

/* The same, with what a page around pictures needs: its colours, the script's box. */
void inks_write_page_style(FILE *out);

/* Shows the values at the pointer, in a page. Pictures say all else without it. */
extern const char inks_script[];

#endif
