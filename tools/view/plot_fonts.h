/* Which characters the installed fonts can draw. */
#ifndef TOOLS_VIEW_PLOT_FONTS_H
#define TOOLS_VIEW_PLOT_FONTS_H

#include <stddef.h>
#include <stdio.h>

/*
 * Copies UTF-8 text; each character that no installed font has becomes "?", and so does a byte that is not UTF-8. The PNG and PDF
 * terminals of gnuplot draw such a character larger than the whole picture. Without fontconfig's program fc-list all
 * characters stay. Returns how many were replaced.
 */
size_t plot_fonts_copy(FILE *from, FILE *to);

#endif
