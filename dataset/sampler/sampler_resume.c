/*
 * The lines that the sampler writes into a checkpoint:
 *
 *     items KEY=VALUE …                  what the items of an epoch depend on
 *     rank R of N
 *     dealt EPOCH N FROM A+B C …         for each epoch that was divided again, see rank_share.h: it began on N ranks. The
 *                                        rest: leave out A places, take 1 + B; leave out C, take 1; …
 */
#include "dataset/sampler/sampler_resume.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The limit for one run: ranks that are further apart do not belong together. */
enum { MAX_OPEN_EPOCHS = 1 << 16 };

/* What a checkpoint says. */
typedef struct saved {
    const char *items; /* to the end of its line */
    weir_world world;
    const char *dealt; /* the rest of the text */
} saved;

static char *describe_identity(const weir_sampler *sampler, uint64_t dataset)
{
    char *line = NULL, *options = weir__sampler_identity(sampler);
    if (options && asprintf(&line, "items dataset=%016" PRIx64 " %s", dataset, options) < 0)
        line = NULL;
    free(options);
    return line;
}

char *weir__sampler_save(const weir_sampler *sampler, uint64_t dataset, uint64_t epoch)
{
    size_t num_shares;
    const weir_rank_share *shares = weir__sampler_shares(sampler, &num_shares);
    weir_world world = weir__sampler_world(sampler);
    char *text = describe_identity(sampler, dataset), *longer = NULL;
    if (text && asprintf(&longer, "%s\nrank %" PRIu32 " of %" PRIu32 "\n", text, world.rank, world.size) < 0)
        longer = NULL;
    free(text);
    for (size_t i = 0; longer && i < num_shares; i++) {
        if (shares[i].epoch < epoch)
            continue;
        char *line = weir__rank_share_text(&shares[i]);
        text = longer;
        if (!line || asprintf(&longer, "%s%s\n", text, line) < 0)
            longer = NULL;
        free(line);
        free(text);
    }
    return longer;
}

/* ---- checking ----------------------------------------------------------------------------------------------------- */

static int not_a_sampler(weir_error *error)
{
    return weir_error_set(error, WEIR_EDATA, 0, "the checkpoint has no valid text of a sampler");
}

static int read_saved(const weir_checkpoint *checkpoint, size_t source, saved *to, weir_error *error)
{
    const weir_checkpoint_source *from = weir_checkpoint_source_at(checkpoint, source);
    const char *text = from ? from->text : NULL;
    const char *rank = text ? strchr(text, '\n') : NULL;
    const char *dealt = rank ? strchr(rank + 1, '\n') : NULL;
    *to = (saved){ .items = text, .dealt = dealt ? dealt + 1 : NULL };
    if (!dealt || strncmp(text, "items ", 6) != 0 ||
        sscanf(rank, "\nrank %" SCNu32 " of %" SCNu32 "\n", &to->world.rank, &to->world.size) != 2 ||
        to->world.rank >= to->world.size)
        return not_a_sampler(error);
    return WEIR_OK;
}

/* The same items? If not, the first word that differs is named. */
static int check_items(const char *own, const char *theirs, weir_error *error)
{
    while (*own || (*theirs && *theirs != '\n')) {
        size_t length = strcspn(own, " "), their_length = strcspn(theirs, " \n");
        if (length != their_length || memcmp(own, theirs, length) != 0)
            return weir_error_set(error, WEIR_EINVAL, 0,
                                  "%s: it has %.*s, this sampler has %.*s; use the dataset and the options of the "
                                  "checkpoint, or start without it",
                                  strncmp(own, "dataset=", 8) == 0 ? "the checkpoint is of another dataset"
                                                                   : "the checkpoint is of another sampler",
                                  (int)their_length, theirs, (int)length, own);
        own += length + (own[length] == ' ');
        theirs += length + (theirs[length] == ' ');
    }
    return WEIR_OK;
}

/* One checkpoint of this rank, or those of all ranks? */
static int check_ranks(const saved *all, size_t num, const weir_world *world, bool *deals, weir_error *error)
{
    uint32_t size = all[0].world.size;
    *deals = num > 1 || size != world->size;
    for (size_t i = 1; i < num; i++)
        for (size_t j = 0; j < i; j++)
            if (all[i].world.size != size || all[i].world.rank == all[j].world.rank)
                return weir_error_set(
                    error, WEIR_EINVAL, 0,
                    "the checkpoints are not of different ranks of one run: see those of rank %" PRIu32 " of %" PRIu32
                    " and rank %" PRIu32 " of %" PRIu32,
                    all[j].world.rank, all[j].world.size, all[i].world.rank, all[i].world.size);
    if (*deals && num != size)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "%zu of the checkpoints of %" PRIu32
                              " ranks are given: to divide the rest among %" PRIu32 " ranks, all are needed",
                              num, size, world->size);
    if (!*deals && all[0].world.rank != world->rank)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "the checkpoint is of rank %" PRIu32 ", but this is rank %" PRIu32 " of %" PRIu32
                              ": give the checkpoint of this rank, or those of all ranks",
                              all[0].world.rank, world->rank, world->size);
    return WEIR_OK;
}

/* ---- share ------------------------------------------------------------------------------------------------------ */

/* The line of this epoch; length 0 = there is none. */
static const char *find_line(const saved *from, uint64_t epoch, size_t *length)
{
    for (const char *at = from->dealt; *at; at += *length + 1) {
        uint64_t number;
        *length = strcspn(at, "\n");
        if (sscanf(at, "dealt %" SCNu64, &number) == 1 && number == epoch)
            return at;
    }
    *length = 0;
    return from->dealt;
}

static uint64_t last_epoch(const saved *from, const weir_checkpoint *checkpoint, size_t source)
{
    uint64_t last = weir_checkpoint_source_at(checkpoint, source)->last_epoch;
    for (const char *at = from->dealt; *at; at += strcspn(at, "\n") + 1) {
        uint64_t epoch = 0;
        if (sscanf(at, "dealt %" SCNu64, &epoch) == 1 && epoch > last)
            last = epoch;
    }
    return last;
}

/* How the ranks had divided the epoch. Those that have completed it do not say. */
static int read_share(const weir_sampler *sampler, const saved *all, size_t num, uint64_t epoch, weir_rank_share *to)
{
    const char *line = "";
    size_t length = 0;
    int status = WEIR_OK;
    *to = (weir_rank_share){ .epoch = epoch, .num_ranks = all[0].world.size };
    for (size_t i = 0; i < num; i++) {
        size_t own_length;
        const char *own = find_line(&all[i], epoch, &own_length);
        if (length && own_length && (length != own_length || memcmp(line, own, length) != 0))
            return WEIR_EDATA;
        line = own_length ? own : line;
        length = own_length ? own_length : length;
    }
    if (length)
        sscanf(line, "dealt %*u %" SCNu32 " %" SCNu64, &to->num_ranks, &to->from);
    uint64_t total = weir__sampler_total(sampler, to->num_ranks ? to->num_ranks : 1);
    if (to->from > total) /* checked first: the list of the rest can be as long as that */
        return WEIR_EDATA;
    if (length) {
        char *copy = strndup(line, length);
        status = copy ? weir__rank_share_read(to, copy) : WEIR_ENOMEM;
        free(copy);
    }
    to->total = total;
    to->share = weir__sampler_share(sampler);
    return status;
}

/* All that a resume is about. */
typedef struct resuming {
    weir_sampler *sampler;
    const weir_checkpoint *const *checkpoints;
    size_t num_checkpoints, source;
    saved *all;        /* of each checkpoint */
    weir_world *ranks; /* of each checkpoint */
    bool deals;        /* the rest is divided again */
    weir_error *error;
} resuming;

/* No rank may have done items that its share of the epoch does not have. */
static int check_shares(const resuming *job, const weir_rank_share *share)
{
    for (size_t i = 0; i < job->num_checkpoints; i++) {
        uint64_t low, end, count = weir__rank_share_count(share, &job->ranks[i]);
        weir_checkpoint_range(job->checkpoints[i], job->source, share->epoch, &low, &end);
        if (end != UINT64_MAX && end > count)
            return weir_error_set(job->error, WEIR_EDATA, 0,
                                  "the checkpoint of rank %" PRIu32 " says that %" PRIu64 " items of epoch %" PRIu64
                                  " have been begun, but its share has only %" PRIu64
                                  ": it is of another dataset or sampler",
                                  job->ranks[i].rank, end, share->epoch, count);
    }
    return WEIR_OK;
}

/* Epochs that have begun: from the first epoch of all ranks to the last one. *num is how many have been made. */
static int make_shares(const resuming *job, uint64_t first, uint64_t end, weir_rank_share *to, weir_rank_share *old,
                       size_t *num)
{
    int status = WEIR_OK;
    for (uint64_t epoch = first; epoch < end && status == WEIR_OK; epoch++) {
        weir_rank_share *was = &old[*num], *is = &to[*num];
        status = read_share(job->sampler, job->all, job->num_checkpoints, epoch, was);
        if (status == WEIR_OK)
            status = check_shares(job, was);
        if (status == WEIR_OK && job->deals) {
            status = weir__rank_share_again(is, was, job->ranks, job->checkpoints, job->num_checkpoints, job->source);
        } else if (status == WEIR_OK) {
            *is = *was;
            *was = (weir_rank_share){ 0 };
        }
        bool has_begun = status == WEIR_OK && is->from;
        if (!has_begun)
            weir__rank_share_free(was);
        *num += has_begun;
    }
    return status;
}

static int deal_rest(const resuming *job)
{
    uint64_t first = UINT64_MAX, end = 0;
    for (size_t i = 0; i < job->num_checkpoints; i++) {
        uint64_t epoch = job->checkpoints[i]->epoch;
        uint64_t last = last_epoch(&job->all[i], job->checkpoints[i], job->source);
        first = epoch < first ? epoch : first;
        end = last + 1 > end ? last + 1 : end;
        job->ranks[i] = job->all[i].world;
    }
    if (end <= first || end - first > MAX_OPEN_EPOCHS) {
        free(job->ranks);
        return WEIR_EDATA;
    }
    size_t num = 0;
    weir_rank_share *shares = calloc(end - first, sizeof *shares);
    weir_rank_share *old = calloc(end - first, sizeof *old);
    int status = shares && old ? make_shares(job, first, end, shares, old, &num) : WEIR_ENOMEM;
    weir__sampler_deal(job->sampler, shares, old, num, job->ranks);
    return status;
}

int weir__sampler_resume(weir_sampler *sampler, uint64_t dataset, const weir_checkpoint *const *checkpoints,
                         size_t num, size_t source, weir_error *error)
{
    weir_world world = weir__sampler_world(sampler);
    char *own = describe_identity(sampler, dataset);
    weir_error reason = { 0 };
    resuming job = { .sampler = sampler,
                     .checkpoints = checkpoints,
                     .num_checkpoints = num,
                     .source = source,
                     .all = calloc(num, sizeof *job.all),
                     .ranks = calloc(num, sizeof *job.ranks),
                     .error = &reason };
    int status = own && job.all && job.ranks ? WEIR_OK : WEIR_ENOMEM;
    for (size_t i = 0; i < num && status == WEIR_OK; i++) {
        status = read_saved(checkpoints[i], source, &job.all[i], &reason);
        if (status == WEIR_OK)
            status = check_items(own, job.all[i].items, &reason);
    }
    if (status == WEIR_OK)
        status = check_ranks(job.all, num, &world, &job.deals, &reason);
    bool is_checked = status == WEIR_OK;
    if (is_checked)
        status = deal_rest(&job); /* owns job.ranks */
    else
        free(job.ranks);
    if (status == WEIR_EDATA && !reason.status)
        not_a_sampler(&reason);
    if (status != WEIR_OK)
        weir_error_set(error, status, 0, "%s", reason.status ? reason.message : "out of memory");
    free(job.all);
    free(own);
    return status == WEIR_OK && job.deals ? WEIR_SKIP : status;
}

/* ---- for programs -------------------------------------------------------------------------------------------------- */

/* Which items they are of is the program's business here. */
static uint64_t dataset_of(const weir_checkpoint *checkpoint, size_t source)
{
    const weir_checkpoint_source *from = weir_checkpoint_source_at(checkpoint, source);
    uint64_t dataset = 0;
    if (from)
        sscanf(from->text, "items dataset=%16" SCNx64, &dataset);
    return dataset;
}

static int begin_first_epoch(weir_sampler *sampler, weir_checkpoint *const *given, size_t num, weir_error *error)
{
    uint64_t epoch = UINT64_MAX;
    for (size_t i = 0; i < num; i++)
        epoch = given[i]->epoch < epoch ? given[i]->epoch : epoch;
    int status = weir_sampler_begin(sampler, epoch);
    return status == WEIR_OK ? WEIR_OK : weir_error_set(error, status, 0, "out of memory");
}

int weir_sampler_resume(weir_sampler *sampler, const char *const *texts, size_t num_texts, size_t source,
                        weir_error *error)
{
    if (!sampler || !texts || num_texts == 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "the sampler or the texts of checkpoints are missing");
    weir_checkpoint **given = calloc(num_texts, sizeof *given);
    int status = given ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    size_t num_read = 0;
    while (status == WEIR_OK && num_read < num_texts) {
        status = weir_checkpoint_read(texts[num_read], &given[num_read], error);
        num_read += status == WEIR_OK;
    }
    if (status == WEIR_OK)
        status = weir__sampler_resume(sampler, dataset_of(given[0], source), (const weir_checkpoint *const *)given,
                                      num_read, source, error);
    if (status >= 0) {
        bool keeps_numbers = status == WEIR_OK;
        status = begin_first_epoch(sampler, given, num_read, error);
        weir__sampler_set_done(sampler, keeps_numbers ? given[0] : NULL, source);
        given[0] = keeps_numbers ? NULL : given[0];
    }
    while (num_read)
        weir_checkpoint_free(given[--num_read]);
    free(given);
    return status;
}
