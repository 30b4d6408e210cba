#include "tools/view/stack_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/memory.h"

/* Frames beyond that count as their outermost one: the trees are walked by recursion, and the file may be anybody's. Ours have
   at most 62, those of perf 127. */
enum { MAX_DEPTH = 1024 };

static const char mark[] = "# weir stacks:";

/* A function, called from its parent; the children of the root are threads. */
struct stack_frame {
    char *name;
    uint64_t count, own; /* samples in it; of these, not in its children */
    stack_frame *parent, *children, *next;
};

bool stacks_are_in(const char *path)
{
    char start[sizeof mark] = "";
    FILE *in = fopen(path, "re");
    bool is_there = in && fgets(start, sizeof start, in) && strcmp(start, mark) == 0;
    if (in)
        fclose(in);
    return is_there;
}

/* Children are in the order of their names, so that stacks that are alike are next to each other. */
static stack_frame *find_child(stack_frame *parent, const char *name)
{
    stack_frame **link = &parent->children;
    while (*link && strcmp((*link)->name, name) < 0)
        link = &(*link)->next;
    if (*link && strcmp((*link)->name, name) == 0)
        return *link;
    stack_frame *child = memory_get(1, sizeof *child);
    *child = (stack_frame){ .name = memory_copy(name), .parent = parent, .next = *link };
    return *link = child;
}

/* "SECOND;THREAD;OUTER;…;INNER SAMPLES" */
static void add_line(stack_frame *root, char *line, int64_t since, int64_t until)
{
    char *rest, *space = strrchr(line, ' '), *names = strchr(line, ';');
    int64_t second = strtoll(line, &rest, 10);
    uint64_t count = space ? strtoull(space, NULL, 10) : 0;
    if (!count || !names || rest != names || names > space || second < since || (until && second >= until) ||
        count > (uint64_t)INT64_MAX - root->count)
        return;
    *space = '\0';
    root->count += count;
    stack_frame *frame = root;
    int depth = 0;
    for (char *name = strtok_r(names, ";", &rest); name && depth < MAX_DEPTH; name = strtok_r(NULL, ";", &rest)) {
        depth++;
        frame = find_child(frame, name);
        frame->count += count;
    }
    frame->own += count;
}

stack_frame *stacks_read(const char *path, int64_t since, int64_t until)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    FILE *in = fopen(path, "re");
    if (!in)
        return NULL;
    stack_frame *root = memory_get(1, sizeof *root);
    *root = (stack_frame){ .name = memory_copy("all") };
    while ((length = getline(&line, &size, in)) > 0)
        /* a killed program may have left half a line, a power loss one of zeros */
        if (line[0] != '#' && line[length - 1] == '\n' && strlen(line) == (size_t)length)
            add_line(root, line, since, until);
    free(line);
    fclose(in);
    return root;
}

void stacks_free(stack_frame *root)
{
    for (stack_frame *next; root; root = next) {
        next = root->next;
        stacks_free(root->children);
        free(root->name);
        free(root);
    }
}

uint64_t stacks_count(const stack_frame *root)
{
    return root->count;
}

/* ---- by function ------------------------------------------------------------------------------------------------ */

typedef struct function {
    const char *name;
    uint64_t total, own;
} function;

typedef struct functions {
    function *all;
    size_t count;
} functions;

/* A function that calls itself counts once. */
static bool is_nested(const stack_frame *frame)
{
    for (const stack_frame *outer = frame->parent; outer->parent->parent; outer = outer->parent)
        if (strcmp(outer->name, frame->name) == 0)
            return true;
    return false;
}

static void add_functions(functions *to, const stack_frame *frame)
{
    for (; frame; frame = frame->next) {
        size_t i = 0;
        add_functions(to, frame->children);
        if (!frame->parent->parent)
            continue; /* a thread */
        while (i < to->count && strcmp(to->all[i].name, frame->name) != 0)
            i++;
        if (i == to->count) {
            to->all = memory_grow(to->all, to->count, sizeof *to->all);
            to->all[to->count++] = (function){ .name = frame->name };
        }
        to->all[i].own += frame->own;
        to->all[i].total += is_nested(frame) ? 0 : frame->count;
    }
}

static int by_own(const void *one, const void *other)
{
    const function *a = one, *b = other;
    if (a->own != b->own)
        return a->own < b->own ? 1 : -1;
    return a->total != b->total ? (a->total < b->total ? 1 : -1) : strcmp(a->name, b->name);
}

void stacks_print(const stack_frame *root, table *t, int64_t top)
{
    functions found = { NULL, 0 };
    add_functions(&found, root->children);
    if (found.count)
        qsort(found.all, found.count, sizeof *found.all, by_own);
    for (size_t i = 0; i < found.count && (int64_t)i < top; i++) {
        const function *one = &found.all[i];
        table_words(t, one->name);
        table_count(t, (int64_t)one->total);
        table_number(t, (double)one->total / (double)root->count);
        table_count(t, (int64_t)one->own);
        table_number(t, (double)one->own / (double)root->count);
    }
    free(found.all);
}

/* ---- folded, and as a picture ------------------------------------------------------------------------------------ */

static void write_names(const stack_frame *frame, FILE *out)
{
    if (frame->parent->parent) {
        write_names(frame->parent, out);
        fputc(';', out);
    }
    fputs(frame->name, out);
}

void stacks_write_folded(const stack_frame *root, FILE *out)
{
    for (const stack_frame *frame = root->children; frame; frame = frame->next) {
        if (frame->own) {
            write_names(frame, out);
            fprintf(out, " %" PRIu64 "\n", frame->own);
        }
        stacks_write_folded(frame, out);
    }
}

enum { WIDTH = 1200, ROW = 17, LETTER = 7 };

static int depth_of(const stack_frame *frame)
{
    int depth = 0;
    for (const stack_frame *child = frame->children; child; child = child->next) {
        int below = depth_of(child);
        depth = below > depth ? below : depth;
    }
    return depth + 1;
}

static void put_xml(FILE *out, const char *text, int length)
{
    for (; *text && length; text++, length--)
        fprintf(out, strchr("<>&\"'", *text) ? "&#%d;" : (unsigned char)*text < ' ' ? "?" : "%c", *text);
}

/* A rectangle for the function, and those that it calls above it. */
static void draw_frame(const stack_frame *frame, uint64_t all, double x, int y, FILE *out)
{
    double width = WIDTH * (double)frame->count / (double)all;
    unsigned hue = 0;
    if (width < 0.5)
        return;
    for (const char *at = frame->name; *at; at++)
        hue = (hue * 31 + (unsigned char)*at) % 50;
    fputs("<g><title>", out);
    put_xml(out, frame->name, -1);
    fprintf(out, ": %" PRIu64 " samples, %.1f %%</title><rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" ",
            frame->count, 100 * (double)frame->count / (double)all, x, y, width, ROW - 1);
    fprintf(out, "fill=\"hsl(%u,80%%,65%%)\"/><text x=\"%.1f\" y=\"%d\">", hue, x + 3, y + ROW - 5);
    put_xml(out, frame->name, (int)(width / LETTER));
    fputs("</text></g>\n", out);
    for (const stack_frame *child = frame->children; child; child = child->next) {
        draw_frame(child, all, x, y - ROW, out);
        x += WIDTH * (double)child->count / (double)all;
    }
}

void stacks_write_flame_graph(const stack_frame *root, FILE *out)
{
    int height = depth_of(root) * ROW;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"monospace\" "
            "font-size=\"11\">\n",
            WIDTH, height);
    draw_frame(root, root->count, 0, height - ROW, out);
    fputs("</svg>\n", out);
}
