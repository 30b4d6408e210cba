#include "tools/view/stack_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/text_columns.h"
#include "common/text_escape.h"
#include "tools/cli/memory.h"
#include "tools/cli/table.h"

/* Deeper frames count as the outermost one of them. The trees are walked by recursion, and the database may be from
   anybody. Databases that weir writes have at most 60 frames. */
enum { MAX_DEPTH = 1024 };

/* A function, called from its parent; the children of the root are stages and threads. */
typedef struct stack_frame {
    char *name;
    uint64_t count, own; /* samples in it; of these, not in its children */
    struct stack_frame *parent, *children, *next;
} stack_frame;

/* A function of one run, as it is read. */
typedef struct stack_call {
    int64_t run_id, stack, caller;
    char *function;
} stack_call;

struct stack_view {
    stack_frame root;
    uint64_t num_lost;
    double cpu_s; /* that all samples stand for, the lost ones too */

    /* by run and number; while it is read */
    stack_call *calls;
    size_t num_calls;
};

/* ---- reading ------------------------------------------------------------------------------------------------------- */

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

static const char calls_sql[] = " SELECT run_id, stack, caller, function FROM stacks ORDER BY run_id, stack";

static int take_call(void *self, const weir_row *row, weir_error *error)
{
    stack_view *view = self;
    (void)error;
    view->calls = memory_grow(view->calls, view->num_calls, sizeof *view->calls);
    view->calls[view->num_calls++] = (stack_call){ .run_id = weir_row_int(row, 0),
                                                   .stack = weir_row_int(row, 1),
                                                   .caller = weir_row_int(row, 2),
                                                   .function = memory_copy(weir_row_text(row, 3)) };
    return WEIR_OK;
}

static int compare_calls(const void *one, const void *other)
{
    const stack_call *a = one, *b = other;
    if (a->run_id != b->run_id)
        return a->run_id < b->run_id ? -1 : 1;
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

/* NULL = it is not there. */
static const stack_call *find_call(const stack_view *view, int64_t run_id, int64_t stack)
{
    const stack_call key = { .run_id = run_id, .stack = stack };
    return view->num_calls ? bsearch(&key, view->calls, view->num_calls, sizeof key, compare_calls) : NULL;
}

/* Below the stage or thread, from the outermost function on. */
static stack_frame *find_frame(stack_view *view, const char *name, int64_t run_id, int64_t stack, uint64_t count)
{
    const stack_call *path[MAX_DEPTH];
    size_t depth = 0;
    stack_frame *frame = find_child(&view->root, *name ? name : "?");
    for (const stack_call *call = find_call(view, run_id, stack); call && depth < MAX_DEPTH;) {
        path[depth++] = call;
        call = call->caller < call->stack ? find_call(view, run_id, call->caller) : NULL;
    }
    frame->count += count;
    while (depth > 0) {
        frame = find_child(frame, path[--depth]->function);
        frame->count += count;
    }
    return frame;
}

static const char samples_sql[] =
    " SELECT run_id, name, stack, CAST(min(sum(1.0 * num_samples), 4e18) AS INTEGER), sum(cpu_time) FROM samples"
    " WHERE num_samples > 0 GROUP BY run_id, name, stack ORDER BY run_id, name, stack";

static int take_samples(void *self, const weir_row *row, weir_error *error)
{
    stack_view *view = self;
    int64_t stack = weir_row_int(row, 2), given = weir_row_int(row, 3);
    uint64_t count = given > 0 ? (uint64_t)given : 0;
    (void)error;
    view->cpu_s += weir_row_real(row, 4);
    if (stack == 0) {
        view->num_lost += count;
        return WEIR_OK;
    }
    if (count > (uint64_t)INT64_MAX - view->root.count)
        return WEIR_OK;
    view->root.count += count;
    find_frame(view, weir_row_text(row, 1), weir_row_int(row, 0), stack, count)->own += count;
    return WEIR_OK;
}

static void forget_calls(stack_view *view)
{
    for (size_t i = 0; i < view->num_calls; i++)
        free(view->calls[i].function);
    free(view->calls);
    view->calls = NULL;
    view->num_calls = 0;
}

int stacks_read(weir_recording *recording, const weir_filter *filter, stack_view **read, weir_error *error)
{
    stack_view *view = memory_get(1, sizeof *view);
    *view = (stack_view){ .root.name = memory_copy("all") };
    int status = weir_recording_hold(recording, error);
    if (status == WEIR_OK) {
        status = weir_recording_query(recording, filter, calls_sql, NULL, take_call, view, error);
        if (status == WEIR_OK)
            status = weir_recording_query(recording, filter, samples_sql, NULL, take_samples, view, error);
        weir_recording_release(recording);
    }
    forget_calls(view);
    if (status != WEIR_OK) {
        stacks_free(view);
        view = NULL;
    }
    *read = view;
    return status;
}

static void free_frames(stack_frame *frame)
{
    for (stack_frame *next; frame; frame = next) {
        next = frame->next;
        free_frames(frame->children);
        free(frame->name);
        free(frame);
    }
}

void stacks_free(stack_view *view)
{
    if (!view)
        return;
    free_frames(view->root.children);
    free(view->root.name);
    free(view);
}

uint64_t stacks_count(const stack_view *view)
{
    return view->root.count;
}

uint64_t stacks_lost(const stack_view *view)
{
    return view->num_lost;
}

int64_t stacks_period_ns(const stack_view *view)
{
    double num_samples = (double)view->root.count + (double)view->num_lost;
    return num_samples > 0 ? (int64_t)(view->cpu_s / num_samples * 1e9 + 0.5) : 0;
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
            continue; /* a stage or thread */
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

static const table_column function_columns[] = {
    { "function", "function", TABLE_WORDS }, { "self_samples", "self samples", TABLE_COUNT },
    { "self_share", "self", TABLE_SHARE },   { "total_samples", "total samples", TABLE_COUNT },
    { "total_share", "total", TABLE_SHARE },
};

void stacks_print(const stack_view *view, FILE *out, table_format format, int64_t top, bool reverse)
{
    functions found = { NULL, 0 };
    table *t = table_begin(out, format, TABLE_COLUMNS(function_columns));
    add_functions(&found, view->root.children);
    if (found.count)
        qsort(found.all, found.count, sizeof *found.all, by_own);
    for (size_t i = 0; i < found.count && (top == 0 || (int64_t)i < top); i++) {
        const function *one = &found.all[reverse ? found.count - 1 - i : i];
        table_words(t, one->name);
        table_count(t, (int64_t)one->own);
        table_number(t, (double)one->own / (double)view->root.count);
        table_count(t, (int64_t)one->total);
        table_number(t, (double)one->total / (double)view->root.count);
    }
    table_end_alone(t);
    free(found.all);
}

/* ---- folded, and as a picture ------------------------------------------------------------------------------------ */

static void write_names(const stack_frame *frame, FILE *out)
{
    if (frame->parent->parent) {
        write_names(frame->parent, out);
        fputc(';', out);
    }
    weir__text_escape_to(out, frame->name);
}

static void write_folded(const stack_frame *root, FILE *out)
{
    for (const stack_frame *frame = root->children; frame; frame = frame->next) {
        if (frame->own) {
            write_names(frame, out);
            fprintf(out, " %" PRIu64 "\n", frame->own);
        }
        write_folded(frame, out);
    }
}

void stacks_write_folded(const stack_view *view, FILE *out)
{
    write_folded(&view->root, out);
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

static void put_xml(FILE *out, const char *text, size_t max_columns)
{
    char *cut = memory_format("%.*s", (int)weir__text_cut(text, max_columns), text);
    html_text(out, cut);
    free(cut);
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
    put_xml(out, frame->name, SIZE_MAX);
    fprintf(out, ": %" PRIu64 " samples, %.1f %%</title><rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" ",
            frame->count, 100 * (double)frame->count / (double)all, x, y, width, ROW - 1);
    fprintf(out, "fill=\"hsl(%u,80%%,65%%)\"/><text x=\"%.1f\" y=\"%d\">", hue, x + 3, y + ROW - 5);
    put_xml(out, frame->name, (size_t)(width / LETTER));
    fputs("</text></g>\n", out);
    for (const stack_frame *child = frame->children; child; child = child->next) {
        draw_frame(child, all, x, y - ROW, out);
        x += WIDTH * (double)child->count / (double)all;
    }
}

/* A click enlarges a function and what it calls; the same again, or elsewhere, undoes it. A text that is typed marks the functions
   that contain it, and says their share; Escape ends that. */
static const char script[] =
    "<script><![CDATA[\n"
    "const svg=document.documentElement,parts=[...svg.querySelectorAll('g')].map(g=>{const "
    "r=g.querySelector('rect'),\n"
    "t=g.querySelector('text');return{g,r,t,name:g.querySelector('title').textContent,x:+r.getAttribute('x'),\n"
    "y:+r.getAttribute('y'),w:+r.getAttribute('width')}}),width=+svg.getAttribute('width'),found=svg.querySelector('#"
    "found');\n"
    "let large=null,text='';\n"
    "function place(of){for(const p of parts){const "
    "left=of?of.x:0,all=of?of.w:width,x=(p.x-left)*width/all,w=p.w*width/all,\n"
    "below=of&&p.y>of.y&&x<=0.5&&x+w>=width-0.5,seen=!of||below||(p.y<=of.y&&x>=-0.5&&x+w<=width+0.5);\n"
    "p.g.style.display=seen?'':'none';const at=below?0:x,wide=below?width:w;p.r.setAttribute('x',at);\n"
    "p.r.setAttribute('width',wide);p.t.setAttribute('x',at+3);\n"
    "p.t.textContent=p.name.slice(0,p.name.lastIndexOf(': ')).slice(0,Math.max(0,Math.floor(wide/7)))}}\n"
    "svg.addEventListener('click',e=>{const "
    "g=e.target.closest('g'),p=parts.find(p=>p.g===g);large=p&&p!==large?p:null;place(large)});\n"
    "document.addEventListener('keydown',e=>{if(e.ctrlKey||e.metaKey||e.altKey)return;if(e.key==='Escape')text='';\n"
    "else if(e.key==='Backspace')text=text.slice(0,-1);else if(e.key.length===1)text+=e.key;else return;let "
    "spans=[];\n"
    "for(const p of parts){const is=text&&p.name.slice(0,p.name.lastIndexOf(': ')).includes(text);\n"
    "p.r.style.fill=is?'rgb(190,90,230)':'';if(is)spans.push([p.x,p.x+p.w])}\n"
    "let sum=0,end=0;for(const[a,b]of "
    "spans.sort((a,b)=>a[0]-b[0])){sum+=Math.max(0,b-Math.max(a,end));end=Math.max(end,b)}\n"
    "found.textContent=text?text+': '+(100*sum/width).toFixed(1)+' %':''});\n"
    "]]></script>\n";

void stacks_write_flame_graph(const stack_view *view, FILE *out)
{
    int height = (depth_of(&view->root) + 1) * ROW;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"monospace\" "
            "font-size=\"11\">\n",
            WIDTH, height);
    draw_frame(&view->root, view->root.count, 0, height - ROW, out);
    fprintf(out, "<text id=\"found\" x=\"3\" y=\"%d\"></text>\n%s</svg>\n", ROW - 5, script);
}
