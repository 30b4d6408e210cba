/*
 * A group: the caller appends its packets (is_whole: all are there); a thread takes it (is_taken), appends its
 * pictures, and ends it (is_done); the caller takes the pictures, and removes it.
 *
 * Invariants:
 * - The groups are in the order of the file. Only the first one's pictures are taken, and only the last one gets packets.
 * - The last pictures of a group leave its decoder at the group's end; one decoder for the whole file gives them while it decodes the
 *   packets behind the group. If one of these is damaged, it gives fewer. So such a picture is taken only when one
 *   decoder would have given it, too. That is when a group behind is under way (is_under_way), or those behind have
 *   as many pictures as the decoder holds back. It is also at the end of the file. If a group behind begins with
 *   another delay of the decoder, the pool is doubtful.
 * - Groups are taken in their order, so the first one has a thread as soon as there is any.
 * - The thread of the first group waits for its packets, which the caller reads whenever the caller waits. It waits
 *   for room only while that group has a picture, or the caller has one. The caller gives that picture back before it waits. The
 *   thread waits for nothing else. If that picture must wait for another group, the latter is `awaited`, and its thread does not wait for
 *   room. As there are two threads at least, it has one. So caller and threads never wait for each other.
 * - waiting_bytes <= max_bytes, except for one picture, what one thread decodes at once, and the pictures of awaited
 *   groups that end before they are under way. The latter are less than twice what a decoder holds back.
 * - A thread does not change anything of the file, the decoder or the stream: it reads the stream's rotation, and its frames go to the
 *   decoder's account of memory, which is atomic.
 */
#include "stages/reader/group_pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include <weir/clock.h>

#include "stages/decoder/stream_facts.h"
#include "stages/reader/bitstream.h"
#include "stages/reader/group_cut.h"
#include "stages/scale/rotate.h"

typedef struct waiting_packet {
    AVPacket *packet;
    struct waiting_packet *next;
} waiting_packet;

typedef struct waiting_picture {
    AVFrame *facts; /* of the frame, without pixels */
    weir_group_picture picture;
    uint8_t *data;
    size_t num_bytes;
    int delay;      /* of the decoder when it gave the frame */
    bool is_behind; /* it left the decoder at the group's end */
    struct waiting_picture *next;
} waiting_picture;

typedef struct group {
    /* guarded by lock */
    waiting_packet *packets, **packets_end;
    waiting_picture *pictures, **pictures_end;
    bool is_whole;
    bool is_taken;
    bool has_frame;    /* its decoder has given one */
    bool is_under_way; /* … before the group's end */
    int begin_delay;   /* of the decoder at that frame */
    bool is_done;
    uint64_t num_pictures;
    int first_delay; /* of the decoder, behind the first packet; -1 = there was none */
    int last_delay;  /* at the end */
    struct group *next;
} group;

typedef struct group_thread {
    weir_group_pool *pool;
    pthread_t thread;
    bool has_thread;

    /* its thread's; the caller's before and after it */
    AVCodecContext *codec;
    AVFrame *frame;
    weir_hidden_packets hidden;
    weir_rotator rotator;
    weir_scaler scaler;
    weir_ffmpeg_log log;
} group_thread;

struct weir_group_pool {
    /* immutable after open */
    weir_file_packets *file;
    const weir_picture_config *config;
    uint64_t max_bytes;
    unsigned num_threads;
    group_thread *threads;

    /* the caller's thread */
    weir_group_cut cut;
    size_t num_cached;        /* packets of the file's cache that were taken */
    bool is_read;             /* all packets */
    bool has_delay;           /* a group has ended */
    int delay;                /* of the decoder, at the end of it */
    waiting_picture *current; /* changed with lock */

    pthread_mutex_t lock;
    /* guarded by lock */
    pthread_cond_t
        has_work; /* a group, a packet, room, the size of pictures, another first or awaited group, or is_stopped */
    pthread_cond_t
        has_news; /* a group's first frame, a picture, the end of a group, a packet was taken, or is_doubtful */
    group *first, *last;
    const group *awaited;   /* by the caller, before it takes the first one's last pictures; NULL = none */
    waiting_picture *spare; /* to be used again */
    uint64_t waiting_bytes; /* of pictures */
    uint64_t peak_bytes;
    size_t packet_bytes; /* of packets that wait */
    int width;           /* of the pictures; 0 = not known yet */
    int height;
    bool is_stopped;
    bool is_doubtful;
};

/* ---- parts ----------------------------------------------------------------------------------------------------- */

static void free_picture(waiting_picture *picture)
{
    if (picture) {
        av_frame_free(&picture->facts);
        free(picture->data);
        free(picture);
    }
}

static void free_pictures(waiting_picture *picture)
{
    while (picture) {
        waiting_picture *next = picture->next;
        free_picture(picture);
        picture = next;
    }
}

static void free_group(group *old)
{
    while (old->packets) {
        waiting_packet *packet = old->packets;
        old->packets = packet->next;
        av_packet_free(&packet->packet);
        free(packet);
    }
    free_pictures(old->pictures);
    free(old);
}

/* ---- threads ----------------------------------------------------------------------------------------------- */

static void note_doubt(weir_group_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->is_doubtful = true;
    pthread_cond_signal(&pool->has_news);
    pthread_mutex_unlock(&pool->lock);
}

/* The next group; NULL = the pool is stopped. */
static group *take_group(weir_group_pool *pool)
{
    group *taken = NULL;
    pthread_mutex_lock(&pool->lock);
    while (!pool->is_stopped) {
        for (taken = pool->first; taken && taken->is_taken;)
            taken = taken->next;
        if (taken)
            break;
        pthread_cond_wait(&pool->has_work, &pool->lock);
    }
    if (taken)
        taken->is_taken = true;
    pthread_mutex_unlock(&pool->lock);
    return taken;
}

/* The group's next packet, which the thread frees; NULL = no more, or stopped. */
static AVPacket *take_packet(weir_group_pool *pool, group *from)
{
    AVPacket *taken = NULL;
    pthread_mutex_lock(&pool->lock);
    while (!pool->is_stopped && !from->packets && !from->is_whole)
        pthread_cond_wait(&pool->has_work, &pool->lock);
    waiting_packet *packet = pool->is_stopped ? NULL : from->packets;
    if (packet) {
        from->packets = packet->next;
        if (!from->packets)
            from->packets_end = &from->packets;
        taken = packet->packet;
        pool->packet_bytes -= (size_t)taken->size + sizeof *taken;
        pthread_cond_signal(&pool->has_news);
    }
    pthread_mutex_unlock(&pool->lock);
    free(packet);
    return taken;
}

/* The size of all pictures, which the first frame of the file determines. False: stopped, or there is none. */
static bool find_size(weir_group_pool *pool, const group *of, const AVFrame *source, int *width, int *height)
{
    pthread_mutex_lock(&pool->lock);
    while (!pool->is_stopped && pool->width == 0 && pool->first != of)
        pthread_cond_wait(&pool->has_work, &pool->lock);
    bool is_found = !pool->is_stopped;
    if (is_found && pool->width == 0) {
        is_found = weir__scaler_size(pool->config, source->width, source->height, &pool->width, &pool->height,
                                     NULL) == WEIR_OK;
        pthread_cond_broadcast(&pool->has_work);
    }
    *width = pool->width;
    *height = pool->height;
    pthread_mutex_unlock(&pool->lock);
    return is_found;
}

/* Waits for room, and takes it; see the invariants. *spare is a picture that is used again, if there is one. False: stopped. */
static bool take_room(weir_group_pool *pool, const group *of, size_t num_bytes, waiting_picture **spare)
{
    pthread_mutex_lock(&pool->lock);
    while (!pool->is_stopped && pool->waiting_bytes + num_bytes > pool->max_bytes && pool->awaited != of &&
           (pool->first != of || of->pictures || pool->current))
        pthread_cond_wait(&pool->has_work, &pool->lock);
    bool is_taken = !pool->is_stopped;
    if (is_taken) {
        pool->waiting_bytes += num_bytes;
        pool->peak_bytes = FFMAX(pool->peak_bytes, pool->waiting_bytes);
        *spare = pool->spare;
        if (*spare)
            pool->spare = (*spare)->next;
    }
    pthread_mutex_unlock(&pool->lock);
    return is_taken;
}

static void give_room_back(weir_group_pool *pool, size_t num_bytes)
{
    pthread_mutex_lock(&pool->lock);
    pool->waiting_bytes -= num_bytes;
    pthread_mutex_unlock(&pool->lock);
}

/* NULL = out of memory. */
static waiting_picture *make_picture(size_t num_bytes)
{
    waiting_picture *made = calloc(1, sizeof *made);
    if (made) {
        made->facts = av_frame_alloc();
        made->data = malloc(num_bytes + WEIR_SCALER_SLACK_BYTES);
        made->num_bytes = num_bytes;
    }
    if (made && made->facts && made->data)
        return made;
    free_picture(made);
    return NULL;
}

/* Scales the picture; NULL = failed, or stopped. Its room is taken. */
static waiting_picture *scale_picture(group_thread *self, const group *of, const AVFrame *picture)
{
    weir_group_pool *pool = self->pool;
    waiting_picture *made = NULL;
    int width, height;
    if (!find_size(pool, of, picture, &width, &height))
        return NULL;
    size_t num_bytes = weir__scaler_picture_bytes(pool->config->pixel, (uint32_t)width, (uint32_t)height);
    if (!take_room(pool, of, num_bytes, &made))
        return NULL;
    if (!made)
        made = make_picture(num_bytes);
    weir__scaler_set(&self->scaler, pool->config, width, height);
    if (!made || weir__scaler_run(&self->scaler, picture, made->data, NULL) != WEIR_OK) {
        free_picture(made);
        give_room_back(pool, num_bytes);
        return NULL;
    }
    made->picture = (weir_group_picture){ made->data, width, height, weir__scaler_last(&self->scaler) };
    return made;
}

/* What the clock and the caller ask of a frame. */
static bool copy_facts(AVFrame *facts, const AVFrame *frame)
{
    facts->width = frame->width;
    facts->height = frame->height;
    facts->format = frame->format;
    bool is_copied = av_frame_copy_props(facts, frame) >= 0;
    av_buffer_unref(&facts->opaque_ref); /* the account of memory counts the pixels */
    return is_copied;
}

static bool append_picture(weir_group_pool *pool, group *to, waiting_picture *picture)
{
    picture->next = NULL;
    pthread_mutex_lock(&pool->lock);
    *to->pictures_end = picture;
    to->pictures_end = &picture->next;
    to->num_pictures++;
    pthread_cond_signal(&pool->has_news);
    pthread_mutex_unlock(&pool->lock);
    return true;
}

/* The first frame of the group. */
static void note_begin(const group_thread *self, group *of, bool is_under_way)
{
    weir_group_pool *pool = self->pool;
    pthread_mutex_lock(&pool->lock);
    of->has_frame = true;
    of->is_under_way = is_under_way;
    of->begin_delay = self->codec->has_b_frames;
    if (is_under_way && pool->awaited == of)
        pool->awaited = NULL;
    pthread_cond_signal(&pool->has_news);
    pthread_mutex_unlock(&pool->lock);
}

/* Makes the picture of the thread's frame. False: failed, or stopped. */
static bool put_group_frame(group_thread *self, group *to, bool is_behind)
{
    const weir_group_pool *pool = self->pool;
    const AVFrame *picture = self->frame;
    if (!pool->config->no_autorotate &&
        weir__rotator_run(&self->rotator, pool->file->decoder->stream, self->frame, &picture, NULL) != WEIR_OK)
        return false;
    waiting_picture *made = scale_picture(self, to, picture);
    if (!made)
        return false;
    made->delay = self->codec->has_b_frames;
    made->is_behind = is_behind;
    if (copy_facts(made->facts, self->frame))
        return append_picture(self->pool, to, made);
    give_room_back(self->pool, made->num_bytes);
    free_picture(made);
    return false;
}

/* Is the frame the one that another decoder would give, at the same time? FFmpeg's guess of a time depends on the frames before. */
static bool is_sound(const group_thread *self)
{
    const AVFrame *frame = self->frame;
    return !(frame->flags & AV_FRAME_FLAG_CORRUPT) && !frame->decode_error_flags && frame->pts != AV_NOPTS_VALUE &&
           frame->best_effort_timestamp == frame->pts && self->log.num_trouble == 0;
}

/* Sends a packet, NULL at the end, and takes the frames that are ready. False: failed, stopped or doubtful. */
static bool decode_packet(group_thread *self, const AVPacket *packet, group *to)
{
    const weir_decoder *decoder = self->pool->file->decoder;
    if (packet && weir__hidden_packets_add(&self->hidden, self->codec->codec, packet) != WEIR_OK)
        return false;
    int rc = avcodec_send_packet(self->codec, packet);
    while (rc >= 0 && (rc = avcodec_receive_frame(self->codec, self->frame)) >= 0) {
        if (!is_sound(self))
            return false;
        if (!to->has_frame) /* only this thread changes it */
            note_begin(self, to, packet != NULL);
        if (!weir__hidden_packets_take(&self->hidden, self->frame) && !put_group_frame(self, to, !packet))
            return false;
    }
    bool is_out = weir__frame_memory_verdict(&decoder->memory, NULL) != WEIR_OK;
    return rc == (packet ? AVERROR(EAGAIN) : AVERROR_EOF) && !is_out && self->log.num_trouble == 0;
}

static bool decode_group(group_thread *self, group *from)
{
    int first_delay = -1;
    bool is_going = true;
    AVPacket *packet;
    while (is_going && (packet = take_packet(self->pool, from))) {
        is_going = decode_packet(self, packet, from);
        if (first_delay < 0)
            first_delay = self->codec->has_b_frames;
        av_packet_free(&packet);
    }
    if (!is_going || !decode_packet(self, NULL, from))
        return false;
    int last_delay = self->codec->has_b_frames;
    avcodec_flush_buffers(self->codec);
    self->hidden.num = 0;
    pthread_mutex_lock(&self->pool->lock);
    from->first_delay = first_delay;
    from->last_delay = last_delay;
    from->is_done = true;
    pthread_cond_signal(&self->pool->has_news);
    pthread_mutex_unlock(&self->pool->lock);
    return true;
}

static void *run_group_thread(void *opaque)
{
    group_thread *self = opaque;
    const char *path = self->pool->file->path;
    group *taken;
    weir__ffmpeg_log_begin(&self->log, path, path);
    self->log.is_quiet = true;
    while ((taken = take_group(self->pool)) && decode_group(self, taken))
        continue;
    weir__ffmpeg_log_end();
    if (taken)
        note_doubt(self->pool);
    return NULL;
}

/* ---- opening --------------------------------------------------------------------------------------------------- */

/* Without a codec or a thread it stays idle: the others do its work. */
static void start_group_thread(weir_group_pool *pool, group_thread *started)
{
    sigset_t all, before;
    *started = (group_thread){ .pool = pool };
    started->codec = weir__decoder_another_codec(pool->file->decoder, NULL);
    started->frame = av_frame_alloc();
    if (!started->codec || !started->frame)
        return;
    sigfillset(&all);
    sigdelset(&all, SIGPROF); /* profilers want it on every thread */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started->has_thread = pthread_create(&started->thread, NULL, run_group_thread, started) == 0;
    if (started->has_thread) /* else it would have that of its creator, which may be a pool's */
        pthread_setname_np(started->thread, "weir-group");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void free_group_thread(group_thread *old)
{
    avcodec_free_context(&old->codec);
    av_frame_free(&old->frame);
    weir__hidden_packets_reset(&old->hidden);
    weir__rotator_free(&old->rotator);
    weir__scaler_reset(&old->scaler);
}

static uint64_t limit_of_pictures(const weir_file_packets *file)
{
    enum { SHARE = 4 }; /* the other three quarters are the decoders' frames */
    return file->decoder->config->max_decoder_bytes / SHARE;
}

/*
 * The frames that a group may have if a pool is to use the threads. While one of n threads is in the first group, the
 * others wait with the pictures of theirs. At the end of the file up to n - 1 threads have nothing to do for the time
 * of a group. With four groups for each thread that is a quarter of the time at most, and an eighth for two threads.
 */
static uint64_t max_group_frames(const weir_file_packets *file, const weir_group_pictures *pictures)
{
    enum { GROUPS_PER_THREAD = 4 };
    uint64_t num_threads = file->decoder->config->threads;
    uint64_t num_frames = weir__stream_estimate_frames(file->decoder->format, file->decoder->stream);
    uint64_t max_frames = limit_of_pictures(file) / pictures->picture_bytes / (num_threads - 1);
    return num_frames == 0 ? max_frames : FFMIN(max_frames, num_frames / (num_threads * GROUPS_PER_THREAD));
}

static bool may_help(const weir_file_packets *file, const weir_group_pictures *pictures)
{
    const weir_decoder *decoder = file->decoder;
    return decoder->config->threads > 1 && pictures->config && pictures->picture_bytes > 0 && !decoder->is_still &&
           weir__bitstream_is_known(decoder->codec->codec_id);
}

static weir_group_pool *make_pool(weir_file_packets *file, const weir_group_pictures *pictures, weir_error *error)
{
    unsigned num_threads = file->decoder->config->threads;
    weir_group_pool *pool = calloc(1, sizeof *pool);
    group_thread *threads = calloc(num_threads, sizeof *threads);
    if (!pool || !threads) {
        free(pool);
        free(threads);
        weir__reader_fail_memory(error);
        return NULL;
    }
    pool->file = file;
    pool->config = pictures->config;
    pool->max_bytes = limit_of_pictures(file);
    pool->num_threads = num_threads;
    pool->threads = threads;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->has_work, NULL);
    pthread_cond_init(&pool->has_news, NULL);
    for (unsigned i = 0; i < num_threads; i++)
        start_group_thread(pool, &threads[i]);
    return pool;
}

int weir__group_pool_open(weir_group_pool **pool, weir_file_packets *file, const weir_group_pictures *pictures,
                          weir_error *error)
{
    bool is_found;
    *pool = NULL;
    if (!may_help(file, pictures))
        return WEIR_OK;
    int rc = weir__file_packets_look_for_group(file, max_group_frames(file, pictures), &is_found, error);
    if (rc != WEIR_OK || !is_found)
        return rc;
    *pool = make_pool(file, pictures, error);
    if (!*pool)
        return WEIR_ENOMEM;
    unsigned num_started = 0;
    for (unsigned i = 0; i < (*pool)->num_threads; i++)
        num_started += (*pool)->threads[i].has_thread;
    if (num_started > 1)
        return WEIR_OK;
    weir__group_pool_free(*pool); /* it goes on without */
    *pool = NULL;
    return WEIR_OK;
}

void weir__group_pool_free(weir_group_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->is_stopped = true;
    pthread_cond_broadcast(&pool->has_work);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->num_threads; i++) {
        if (pool->threads[i].has_thread)
            pthread_join(pool->threads[i].thread, NULL);
        free_group_thread(&pool->threads[i]);
    }
    while (pool->first) {
        group *next = pool->first->next;
        free_group(pool->first);
        pool->first = next;
    }
    free_pictures(pool->spare);
    free_picture(pool->current);
    pthread_cond_destroy(&pool->has_news);
    pthread_cond_destroy(&pool->has_work);
    pthread_mutex_destroy(&pool->lock);
    free(pool->threads);
    free(pool);
}

/* ---- the caller ------------------------------------------------------------------------------------------------- */

/* The next packet of the file, of those that were looked at first; the caller frees it. */
static int next_file_packet(weir_group_pool *pool, AVPacket **packet, weir_error *error)
{
    weir_file_packets *file = pool->file;
    *packet = NULL;
    if (pool->num_cached < file->num_cached) {
        *packet = av_packet_clone(file->cache[pool->num_cached++]);
        return *packet ? WEIR_OK : weir__reader_fail_memory(error);
    }
    if (file->is_read)
        return WEIR_EOF;
    int rc = weir__file_packets_read(file, error);
    if (rc != WEIR_OK)
        return rc;
    *packet = av_packet_alloc();
    if (*packet)
        av_packet_move_ref(*packet, file->decoder->packet);
    av_packet_unref(file->decoder->packet);
    return *packet ? WEIR_OK : weir__reader_fail_memory(error);
}

/* With lock. */
static void end_last_group(weir_group_pool *pool)
{
    if (pool->last)
        pool->last->is_whole = true;
    pthread_cond_broadcast(&pool->has_work);
}

/* With lock. */
static void append_group(weir_group_pool *pool, group *begun)
{
    end_last_group(pool);
    begun->packets_end = &begun->packets;
    begun->pictures_end = &begun->pictures;
    if (pool->last)
        pool->last->next = begun;
    else
        pool->first = begun;
    pool->last = begun;
}

/* Takes the packet over. */
static int append_packet(weir_group_pool *pool, AVPacket *packet, weir_error *error)
{
    bool is_begin = weir__group_cut_add(&pool->cut, pool->file->decoder->stream->codecpar, packet);
    is_begin |= pool->cut.num_packets == 1;
    waiting_packet *waiting = calloc(1, sizeof *waiting);
    group *begun = is_begin ? calloc(1, sizeof *begun) : NULL;
    if (!waiting || (is_begin && !begun)) {
        free(waiting);
        free(begun);
        av_packet_free(&packet);
        return weir__reader_fail_memory(error);
    }
    waiting->packet = packet;
    pthread_mutex_lock(&pool->lock);
    if (begun)
        append_group(pool, begun);
    *pool->last->packets_end = waiting;
    pool->last->packets_end = &waiting->next;
    pool->packet_bytes += (size_t)packet->size + sizeof *packet;
    pool->is_doubtful |= pool->cut.is_wrong;
    pthread_cond_broadcast(&pool->has_work);
    pthread_mutex_unlock(&pool->lock);
    return WEIR_OK;
}

static int read_group_packet(weir_group_pool *pool, weir_error *error)
{
    AVPacket *packet;
    int rc = next_file_packet(pool, &packet, error);
    if (rc == WEIR_OK)
        return append_packet(pool, packet, error);
    if (rc != WEIR_EOF)
        return rc;
    pool->is_read = true;
    pthread_mutex_lock(&pool->lock);
    end_last_group(pool);
    pthread_mutex_unlock(&pool->lock);
    return WEIR_OK;
}

/* The first group has given all its pictures. With lock. */
static void remove_first(weir_group_pool *pool)
{
    group *old = pool->first;
    bool is_same = old->first_delay == old->last_delay && old->last_delay == pool->delay;
    pool->is_doubtful |= pool->has_delay && !is_same;
    pool->delay = old->last_delay;
    pool->has_delay = true;
    pool->first = old->next;
    if (!pool->first)
        pool->last = NULL;
    free_group(old);
    pthread_cond_broadcast(&pool->has_work);
}

/* Would one decoder have given the first group's last pictures, of which this is one? Otherwise *awaited is the group
   that will tell, or NULL: a packet will, or the pool is doubtful. With lock. */
static bool is_passed(weir_group_pool *pool, const waiting_picture *last, const group **awaited)
{
    uint64_t num_held = (uint64_t)FFMAX(last->delay, 1);
    uint64_t num_behind = 0;
    *awaited = NULL;
    for (const group *behind = pool->first->next; behind && num_behind < num_held; behind = behind->next) {
        pool->is_doubtful |= behind->has_frame && behind->begin_delay != last->delay;
        pool->is_doubtful |= behind->is_done && behind->last_delay != last->delay;
        if (pool->is_doubtful || behind->is_under_way)
            return !pool->is_doubtful;
        if (!behind->is_done) {
            *awaited = behind;
            return false;
        }
        num_behind += behind->num_pictures;
    }
    return num_behind >= num_held || pool->is_read;
}

/* Changes which group's thread need not wait for room. With lock. */
static void await_group(weir_group_pool *pool, const group *awaited)
{
    if (awaited && awaited != pool->awaited)
        pthread_cond_broadcast(&pool->has_work);
    pool->awaited = awaited;
}

/* The next picture, if it is there. With lock. */
static waiting_picture *take_picture(weir_group_pool *pool)
{
    const group *awaited = NULL;
    while (pool->first && !pool->first->pictures && pool->first->is_done)
        remove_first(pool);
    waiting_picture *taken = pool->first ? pool->first->pictures : NULL;
    pool->is_doubtful |= taken && pool->has_delay && taken->delay != pool->delay; /* before it is given out */
    if (!taken || pool->is_doubtful)
        return NULL;
    bool is_taken = !taken->is_behind || is_passed(pool, taken, &awaited);
    await_group(pool, awaited);
    if (!is_taken)
        return NULL;
    pool->first->pictures = taken->next;
    if (!taken->next)
        pool->first->pictures_end = &pool->first->pictures;
    return taken;
}

/* With lock. */
static bool should_read(const weir_group_pool *pool)
{
    bool is_starving = !pool->first || (!pool->first->packets && !pool->first->is_whole);
    return !pool->is_read && (is_starving || pool->packet_bytes < pool->file->max_cached_bytes);
}

/* One look at the threads. WEIR_SKIP: look again, after reading if *is_hungry. */
static int look_at_threads(weir_group_pool *pool, bool *is_hungry)
{
    int rc = WEIR_SKIP;
    pthread_mutex_lock(&pool->lock);
    pool->current = take_picture(pool);
    *is_hungry = should_read(pool);
    if (pool->is_doubtful)
        rc = WEIR_MORE;
    else if (pool->current)
        rc = WEIR_OK;
    else if (!pool->first && pool->is_read)
        rc = WEIR_EOF;
    else if (!*is_hungry)
        pthread_cond_wait(&pool->has_news, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    return rc;
}

/* The picture of before makes room. */
static void drop_current(weir_group_pool *pool)
{
    waiting_picture *old = pool->current;
    if (!old)
        return;
    av_frame_unref(old->facts);
    pthread_mutex_lock(&pool->lock);
    pool->current = NULL;
    pool->waiting_bytes -= old->num_bytes;
    old->next = pool->spare;
    pool->spare = old;
    pthread_cond_broadcast(&pool->has_work);
    pthread_mutex_unlock(&pool->lock);
}

static int wait_for_picture(weir_group_pool *pool, weir_error *error)
{
    bool is_hungry;
    int rc;
    while ((rc = look_at_threads(pool, &is_hungry)) == WEIR_SKIP) {
        rc = weir__decoder_check_stop(pool->file->decoder, error);
        if (rc == WEIR_OK && is_hungry)
            rc = read_group_packet(pool, error);
        if (rc != WEIR_OK)
            break;
    }
    return rc;
}

int weir__group_pool_next(weir_group_pool *pool, weir_error *error)
{
    weir_decoder *decoder = pool->file->decoder;
    int64_t start_ns = weir_clock_ns() - decoder->cost.demux_ns;
    drop_current(pool);
    int rc = weir__decoder_check_stop(decoder, error);
    if (rc == WEIR_OK)
        rc = wait_for_picture(pool, error);
    decoder->cost.decode_ns += weir_clock_ns() - decoder->cost.demux_ns - start_ns;
    if (rc != WEIR_OK)
        return rc;
    av_frame_unref(decoder->frame);
    av_frame_move_ref(decoder->frame, pool->current->facts);
    if (decoder->on_frame)
        decoder->on_frame(decoder->self);
    return weir__decoder_check_frame(decoder, error);
}

const weir_group_picture *weir__group_pool_picture(const weir_group_pool *pool)
{
    return pool && pool->current ? &pool->current->picture : NULL;
}

uint64_t weir__group_pool_bytes(weir_group_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    uint64_t bytes = pool->waiting_bytes;
    pthread_mutex_unlock(&pool->lock);
    return bytes;
}

uint64_t weir__group_pool_peak_bytes(weir_group_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    uint64_t peak_bytes = pool->peak_bytes;
    pthread_mutex_unlock(&pool->lock);
    return peak_bytes;
}

uint64_t weir__group_pool_max_bytes(const weir_group_pool *pool)
{
    return pool->max_bytes;
}
