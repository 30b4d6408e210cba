#include "stages/reader/packet_blocks.h"

#include <stdlib.h>

#include <libavutil/avutil.h>
#include <libavutil/common.h>

int weir__packet_blocks_init(weir_packet_blocks *blocks, size_t num_blocks)
{
    blocks->all = calloc(num_blocks + 1, sizeof *blocks->all);
    if (!blocks->all)
        return WEIR_ENOMEM;
    blocks->num = num_blocks;
    blocks->bytes = (num_blocks + 1) * sizeof *blocks->all;
    return WEIR_OK;
}

/* ---- where a packet, a frame and a time are -------------------------------------------------------------------- */

typedef enum search_by { BY_PACKET, BY_FRAME, BY_TIME } search_by;

static bool begins_after(const weir_packet_block *block, search_by by, int64_t value)
{
    switch (by) {
    case BY_PACKET: return block->first_packet > value;
    case BY_FRAME: return block->first_frame > value;
    case BY_TIME: break;
    }
    return block->first_time > value;
}

/* The last block that does not begin after the value; the first one if all do. */
static size_t last_block(const weir_packet_blocks *blocks, search_by by, int64_t value)
{
    size_t low = 0, high = blocks->num;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (begins_after(&blocks->all[middle], by, value))
            high = middle;
        else
            low = middle;
    }
    return low;
}

static size_t block_of(weir_packet_blocks *blocks, search_by by, int64_t value)
{
    const weir_packet_block *latest = &blocks->all[blocks->latest];
    if (begins_after(latest, by, value) || !begins_after(latest + 1, by, value))
        blocks->latest = last_block(blocks, by, value);
    return blocks->latest;
}

size_t weir__packet_blocks_with(weir_packet_blocks *blocks, size_t packet)
{
    return block_of(blocks, BY_PACKET, (int64_t)packet);
}

static size_t num_packets_of(const weir_packet_block *block)
{
    return block[1].first_packet - block->first_packet;
}

static size_t num_frames_of(const weir_packet_block *block)
{
    return block[1].first_frame - block->first_frame;
}

static int64_t pts_of(const weir_packet_block *block, size_t frame)
{
    return block->packets[block->frames[frame] - block->first_packet].pts;
}

/* ---- loading --------------------------------------------------------------------------------------------------- */

typedef struct dated {
    int64_t pts;
    uint32_t packet;
} dated;

static int compare_dated(const void *a, const void *b)
{
    const dated *left = a;
    const dated *right = b;
    return left->pts < right->pts ? -1 : left->pts > right->pts;
}

/* Sets the order of presentation. False: the packets do not show it, or the directory does not fit them. */
static bool order_frames(weir_packet_block *block, dated *dates)
{
    size_t num_packets = num_packets_of(block), num = 0;
    for (size_t i = 0; i < num_packets; i++)
        if (block->packets[i].flags & WEIR_PACKET_SHOWN)
            dates[num++] = (dated){ .pts = block->packets[i].pts, .packet = block->first_packet + (uint32_t)i };
    qsort(dates, num, sizeof *dates, compare_dated);
    if (num != num_frames_of(block) || !(block->packets[0].flags & WEIR_PACKET_CLEAN))
        return false;
    for (size_t i = 0; i < num; i++) {
        if (dates[i].pts == AV_NOPTS_VALUE || (i > 0 && dates[i].pts == dates[i - 1].pts))
            return false;
        block->frames[i] = dates[i].packet;
    }
    return true;
}

static void set_starts(weir_packet_block *block)
{
    uint32_t start = block->first_packet;
    for (size_t i = 0; i < num_packets_of(block); i++) {
        start = block->packets[i].flags & WEIR_PACKET_CLEAN ? block->first_packet + (uint32_t)i : start;
        block->packets[i].start = start;
    }
}

/* Are its frames shown after those of the block before it, if that is loaded? */
static bool is_after(const weir_packet_block *block)
{
    const weir_packet_block *before = block - 1;
    return !before->packets || !block->packets || pts_of(before, num_frames_of(before) - 1) < pts_of(block, 0);
}

static bool is_in_order(const weir_packet_blocks *blocks, const weir_packet_block *block)
{
    bool is_first = block == blocks->all, is_last = block == &blocks->all[blocks->num - 1];
    int64_t first_pts = pts_of(block, 0), last_pts = pts_of(block, num_frames_of(block) - 1);
    if (blocks->is_exact)
        return first_pts == block->first_time && (is_last || last_pts < block[1].first_time);
    return first_pts >= block->first_time && (is_first || is_after(block)) && (is_last || is_after(block + 1));
}

static void unload(weir_packet_block *block)
{
    free(block->packets);
    free(block->frames);
    block->packets = NULL;
    block->frames = NULL;
}

/* Into memory that is there. */
static int read_block(weir_packet_blocks *blocks, weir_packet_block *block, dated *dates, weir_error *error)
{
    int rc = blocks->read(blocks->self, block, block->packets, error);
    if (rc != WEIR_OK)
        return rc;
    set_starts(block);
    if (order_frames(block, dates) && is_in_order(blocks, block))
        return WEIR_OK;
    return weir_error_set(error, WEIR_EDATA, 0, "the file's packets are not those that its list of packets names");
}

static int load_block(weir_packet_blocks *blocks, weir_packet_block *block, weir_error *error)
{
    size_t num_packets = num_packets_of(block), num_frames = num_frames_of(block);
    dated *dates = calloc(num_packets, sizeof *dates);
    block->packets = calloc(num_packets, sizeof *block->packets);
    block->frames = calloc(num_frames, sizeof *block->frames);
    bool has_memory = dates && block->packets && block->frames;
    int rc =
        has_memory ? read_block(blocks, block, dates, error) : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    free(dates);
    if (rc != WEIR_OK)
        unload(block);
    else
        blocks->bytes += num_packets * sizeof *block->packets + num_frames * sizeof *block->frames;
    return rc;
}

bool weir__packet_blocks_load(weir_packet_blocks *blocks, size_t block)
{
    if (blocks->all[block].packets)
        return true;
    if (blocks->rc == WEIR_OK)
        blocks->rc = load_block(blocks, &blocks->all[block], &blocks->error);
    return blocks->rc == WEIR_OK;
}

bool weir__packet_blocks_try(weir_packet_blocks *blocks, size_t block)
{
    bool was_right = blocks->rc == WEIR_OK;
    if (blocks->is_doubtful || weir__packet_blocks_load(blocks, block))
        return !blocks->is_doubtful;
    blocks->is_doubtful = was_right && blocks->rc == WEIR_EDATA;
    blocks->rc = blocks->is_doubtful ? WEIR_OK : blocks->rc;
    return false;
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

weir_packet_entry *weir__packet_blocks_packet(weir_packet_blocks *blocks, size_t packet)
{
    size_t at = block_of(blocks, BY_PACKET, (int64_t)packet);
    const weir_packet_block *block = &blocks->all[at];
    if (weir__packet_blocks_load(blocks, at))
        return &block->packets[packet - block->first_packet];
    blocks->none = (weir_packet_entry){ 0 };
    return &blocks->none;
}

size_t weir__packet_blocks_packet_of(weir_packet_blocks *blocks, size_t frame)
{
    size_t at = block_of(blocks, BY_FRAME, (int64_t)frame);
    const weir_packet_block *block = &blocks->all[at];
    return weir__packet_blocks_load(blocks, at) ? block->frames[frame - block->first_frame] : block->first_packet;
}

/* The number of its frames that are shown before that time. */
static size_t count_before(const weir_packet_block *block, int64_t pts)
{
    size_t low = 0, high = num_frames_of(block);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pts_of(block, middle) < pts)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool weir__packet_blocks_find(weir_packet_blocks *blocks, int64_t pts, size_t *frame)
{
    enum { MAX_BACK = 4 }; /* no decoder holds frames of more blocks */
    size_t last = last_block(blocks, BY_TIME, pts);
    if (blocks->is_exact && !weir__packet_blocks_load(blocks, last))
        return false;
    for (size_t back = 0; back <= FFMIN(last, MAX_BACK); back++) {
        const weir_packet_block *block = &blocks->all[last - back];
        size_t at = block->packets ? count_before(block, pts) : num_frames_of(block);
        if (at < num_frames_of(block) && pts_of(block, at) == pts) {
            *frame = block->first_frame + at;
            return true;
        }
        if (blocks->is_exact)
            return false;
    }
    return false;
}

void weir__packet_blocks_narrow(weir_packet_blocks *blocks, int64_t low, int64_t high, size_t *begin, size_t *end)
{
    size_t last = last_block(blocks, BY_TIME, high);
    size_t first = last_block(blocks, BY_TIME, low);
    *end = blocks->all[last + 1].first_frame;
    while (!blocks->is_exact && first > 0 && weir__packet_blocks_load(blocks, first) &&
           pts_of(&blocks->all[first], 0) > low)
        first--;
    *begin = blocks->all[first].first_frame;
}

void weir__packet_blocks_reset(weir_packet_blocks *blocks)
{
    for (size_t i = 0; i < blocks->num; i++)
        unload(&blocks->all[i]);
    free(blocks->all);
    free(blocks->self);
    *blocks = (weir_packet_blocks){ 0 };
}
