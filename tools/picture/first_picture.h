/* The rows of the first picture. */
#ifndef TOOLS_PICTURE_FIRST_PICTURE_H
#define TOOLS_PICTURE_FIRST_PICTURE_H

#include "tools/picture/layout.h"

void first_picture_put(layout *l);

#endif
