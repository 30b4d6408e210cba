/* Put and get work as in libavfilter; this file adds the graph and our errors. */
#include "stages/picture/filter_graph.h"

#include <inttypes.h>
#include <stdio.h>

#ifdef WEIR_HAVE_FILTER
#include <libavfilter/avfilter.h>
#include <libavfilter/buffersink.h>
#include <libavfilter/buffersrc.h>
#include <libavutil/mathematics.h>
#include <libavutil/mem.h>

#include "stages/ffmpeg/ffmpeg_log.h"
#include "stages/scale/lent_picture.h"

static bool is_single(const AVFilterInOut *ends)
{
    return ends && !ends->next;
}

int weir__filter_check(const char *description, weir_error *error)
{
    weir_ffmpeg_log log = { .label = NULL };
    AVFilterInOut *inputs = NULL;
    AVFilterInOut *outputs = NULL;
    AVFilterGraph *graph = avfilter_graph_alloc();
    int status = WEIR_OK;
    weir__ffmpeg_log_begin(&log, description, NULL);
    int rc = graph ? avfilter_graph_parse2(graph, description, &inputs, &outputs) : AVERROR(ENOMEM);
    weir__ffmpeg_log_end();
    if (rc < 0)
        status = weir_error_set(error, rc == AVERROR(ENOMEM) ? WEIR_ENOMEM : WEIR_EINVAL, rc,
                                "filter \"%s\" is not supported by this FFmpeg (%s): see `ffmpeg -filters`",
                                description, log.first_error);
    else if (!is_single(inputs) || !is_single(outputs))
        status =
            weir_error_set(error, WEIR_EINVAL, 0, "filter \"%s\" must have one input and one output", description);
    avfilter_inout_free(&inputs);
    avfilter_inout_free(&outputs);
    avfilter_graph_free(&graph);
    return status;
}

void weir__filter_reset(weir_filter *filter)
{
    avfilter_graph_free(&filter->graph);
    av_frame_free(&filter->in);
    av_frame_free(&filter->source_copy);
    av_frame_free(&filter->out);
    filter->source = NULL;
    filter->sink = NULL;
}

static int make_source(weir_filter *filter, const AVFrame *frame)
{
    filter->source = avfilter_graph_alloc_filter(filter->graph, avfilter_get_by_name("buffer"), "in");
    AVBufferSrcParameters *parameters = av_buffersrc_parameters_alloc();
    int rc = filter->source && parameters ? 0 : AVERROR(ENOMEM);
    if (rc == 0) {
        parameters->format = frame->format;
        parameters->width = frame->width;
        parameters->height = frame->height;
        parameters->time_base = filter->time_base;
        parameters->sample_aspect_ratio = frame->sample_aspect_ratio;
#if LIBAVFILTER_VERSION_INT >= AV_VERSION_INT(10, 0, 100)
        parameters->color_space = frame->colorspace;
        parameters->color_range = frame->color_range;
#endif
        rc = av_buffersrc_parameters_set(filter->source, parameters);
    }
    if (rc >= 0)
        rc = avfilter_init_str(filter->source, NULL);
    av_free(parameters);
    return rc;
}

/* Adds the description's filters between source and sink. */
static int connect_filter(weir_filter *filter)
{
    AVFilterInOut *inputs = NULL;
    AVFilterInOut *outputs = NULL;
    int rc = avfilter_graph_create_filter(&filter->sink, avfilter_get_by_name("buffersink"), "out", NULL, NULL,
                                          filter->graph);
    if (rc >= 0)
        rc = avfilter_graph_parse2(filter->graph, filter->description, &inputs, &outputs);
    if (rc >= 0 && (!is_single(inputs) || !is_single(outputs)))
        rc = AVERROR(EINVAL);
    if (rc >= 0)
        rc = avfilter_link(filter->source, 0, inputs->filter_ctx, (unsigned)inputs->pad_idx);
    if (rc >= 0)
        rc = avfilter_link(outputs->filter_ctx, (unsigned)outputs->pad_idx, filter->sink, 0);
    if (rc >= 0)
        rc = avfilter_graph_config(filter->graph, NULL);
    avfilter_inout_free(&inputs);
    avfilter_inout_free(&outputs);
    return rc;
}

static bool knows_format(const weir_filter *filter, const AVFrame *frame)
{
    return filter->graph && filter->width == frame->width && filter->height == frame->height &&
           filter->format == frame->format && filter->colorspace == (int)frame->colorspace &&
           filter->range == (int)frame->color_range;
}

static int prepare_graph(weir_filter *filter, const AVFrame *frame, AVRational time_base, weir_error *error)
{
    weir__filter_reset(filter);
    filter->width = frame->width;
    filter->height = frame->height;
    filter->format = frame->format;
    filter->colorspace = (int)frame->colorspace;
    filter->range = (int)frame->color_range;
    filter->time_base = time_base;
    filter->graph = avfilter_graph_alloc();
    filter->in = av_frame_alloc();
    filter->out = av_frame_alloc();
    if (!filter->graph || !filter->in || !filter->out)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    filter->graph->nb_threads = 1;
    int rc = make_source(filter, frame);
    if (rc >= 0)
        rc = connect_filter(filter);
    return rc < 0 ? weir__ffmpeg_error(error, rc, "the filter does not accept this kind of picture") : WEIR_OK;
}

int weir__filter_put(weir_filter *filter, const AVFrame *frame, int64_t pts, AVRational time_base, weir_error *error)
{
    int rc = WEIR_OK;
    if (!frame && !filter->graph)
        return WEIR_OK;
    if (frame)
        rc = weir__picture_check(frame, "filter", error);
    if (rc == WEIR_OK && frame && !knows_format(filter, frame))
        rc = prepare_graph(filter, frame, time_base, error);
    if (rc != WEIR_OK) {
        weir__filter_reset(filter);
        return rc;
    }
    if (frame) {
        const AVFrame *lent;
        rc = weir__lend_source(&filter->source_copy, frame, WEIR_TOUCH_STRIDES, &lent, error);
        if (rc != WEIR_OK)
            return rc;
        rc = av_frame_ref(filter->in, lent);
        if (rc >= 0 && lent != frame)
            rc = av_frame_copy_props(filter->in, frame);
        filter->in->pts = pts;
    }
    if (rc >= 0)
        rc = av_buffersrc_add_frame_flags(filter->source, frame ? filter->in : NULL, AV_BUFFERSRC_FLAG_PUSH);
    av_frame_unref(filter->in);
    return rc < 0 ? weir__ffmpeg_error(error, rc, "the filter failed") : WEIR_OK;
}

int weir__filter_get(weir_filter *filter, const AVFrame **frame, weir_error *error)
{
    if (!filter->graph)
        return WEIR_SKIP;
    av_frame_unref(filter->out);
    int rc = av_buffersink_get_frame(filter->sink, filter->out);
    if (rc == AVERROR(EAGAIN))
        return WEIR_SKIP;
    if (rc == AVERROR_EOF)
        return WEIR_EOF;
    if (rc < 0)
        return weir__ffmpeg_error(error, rc, "the filter failed");
    if (filter->out->pts != AV_NOPTS_VALUE)
        filter->out->pts =
            av_rescale_q(filter->out->pts, av_buffersink_get_time_base(filter->sink), filter->time_base);
    *frame = filter->out;
    return WEIR_OK;
}

#else

int weir__filter_check(const char *description, weir_error *error)
{
    return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                          "filter \"%s\": weir was built without libavfilter: install it and build weir again "
                          "(Debian: libavfilter-dev)",
                          description);
}

int weir__filter_put(weir_filter *filter, const AVFrame *frame, int64_t pts, AVRational time_base, weir_error *error)
{
    (void)frame;
    (void)pts;
    (void)time_base;
    return weir__filter_check(filter->description, error);
}

int weir__filter_get(weir_filter *filter, const AVFrame **frame, weir_error *error)
{
    (void)frame;
    return weir__filter_check(filter->description, error);
}

void weir__filter_reset(weir_filter *filter)
{
    (void)filter;
}
#endif
