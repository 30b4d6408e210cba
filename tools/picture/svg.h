/* Pieces of SVG: numbers, text, paths. Coordinates are CSS pixels at full width. */
#ifndef TOOLS_PICTURE_SVG_H
#define TOOLS_PICTURE_SVG_H

#include <stdio.h>

/* At most two decimals, without zeros at the end. */
void svg_number(FILE *out, double number);

/* Writes the text escaped, on one line, with characters that XML does not allow replaced. After max_columns columns
   it writes "…". */
void svg_escape(FILE *out, const char *text, size_t max_columns);

/* How wide a text is about, in any sans-serif font. */
double svg_text_width(const char *text);

/* The most columns of a text that fit into this width. */
size_t svg_columns(double width);

/* anchor: "start", "middle" or "end". */
void svg_text(FILE *out, const char *class, double x, double y, const char *anchor, const char *text,
              size_t max_columns);

/* What browsers show while the pointer rests on the element that it is in. */
void svg_title(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

void svg_line(FILE *out, const char *class, double x1, double y1, double x2, double y2);

/* Leaves the element open: close it with svg_close_rectangle(). */
void svg_rectangle(FILE *out, const char *class, double x, double y, double width, double height);
void svg_close_rectangle(FILE *out);

#endif
