/*
 * libFuzzer's target: what else comes from outside. The first byte of the input says what the others are. They are
 * traces, lists and archives of other programs, or the index of a dataset with changed values. They may also be
 * command lines, or the messages of a child process that a file has broken.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/bytes.h>
#include <weir/dataset.h>
#include <weir/engine.h>

#include "dataset/index/index_file.h"
#include "dataset/index/tar_members.h"
#include "stages/isolate/message.h"
#include "tests/fuzz/changed_database.h"
#include "tests/fuzz/run_weir.h"
#include "tools/cli/path_list.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static changed_database clips;

static void write_file(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    require(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

/* A status below 0 has a text. */
static int reported(int status, const weir_error *error)
{
    require(status >= 0 || error->message[0]);
    return status;
}

/* ---- traces, lists, archives ------------------------------------------------------------------------------------- */

static void read_trace(const uint8_t *data, size_t size)
{
    static const char *const lines[] = { "trace other.json", "trace other.json --json",
                                         "trace other.json --output merged.json" };
    write_file("other.json", data + 1, size - 1);
    run_weir(lines[data[0] % COUNT(lines)], ' ');
}

static void read_list(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "list.txt", "list.csv", "list.tsv", "list.json", "list.jsonl" };
    const char *name = names[data[0] % COUNT(names)];
    path_list list = { 0 };
    char problem[512] = "";
    write_file(name, data + 1, size - 1);
    bool is_read = path_list_read(name,
                                  &(path_list_names){ .path = "path",
                                                      .label = "label",
                                                      .start = "start",
                                                      .end = "end",
                                                      .start_frame = "first",
                                                      .end_frame = "behind" },
                                  &list, problem);
    require(is_read || problem[0]);
    path_list_free(&list);
}

static void read_archive(const uint8_t *data, size_t size)
{
    weir_tar_members members = { 0 };
    weir_error error = { 0 };
    write_file("members.tar", data, size);
    int status = reported(weir__tar_members_open(&members, "members.tar", &error), &error);
    while (status == WEIR_OK) {
        status = reported(weir__tar_members_next(&members, &error), &error);
        require(status != WEIR_OK || (members.size >= 0 && members.offset >= 0 && members.name &&
                                      members.offset <= (int64_t)size - members.size));
    }
    weir__tar_members_close(&members);
}

/* ---- the index --------------------------------------------------------------------------------------------------- */

static void make_index(void)
{
    static const char sql[] =
        "INSERT INTO dataset VALUES ('root', '/videos'), ('complete', '1'), ('num_clips', '10'), ('fingerprint', "
        "'7');"
        "INSERT INTO class VALUES ('cat'), ('dog');"
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 12)"
        " INSERT INTO clip (number, identity, is_redacted, path, occurrence, label, size_bytes, mtime_ns, codec, "
        "width, height, duration,"
        " num_frames, num_keyframes, num_errors, status, library_code, message, archive_length, offset, num_missing) "
        "SELECT iif(i "
        "% 5, i - i / 5, NULL),"
        " format('%02d.mp4', i), 0, format('%02d.mp4', i), 0, iif(i % 2, 'cat', 'dog'), 1000 * i, i, 'h264', 320, "
        "240, 4.5, 120, 10, 0,"
        " iif(i % 5, 0, -4), 0, iif(i % 5, '', 'broken'), 0, 0, i % 3 FROM n;"
        "INSERT INTO packets SELECT clip_id, zeroblob(40) FROM clip;";
    sqlite3 *db;
    weir_error error = { 0 };
    require(weir__index_open_writer("clips.weir", &db, &error) == WEIR_OK);
    require(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
    require(sqlite3_close(db) == SQLITE_OK);
    changed_database_read(&clips, "clips.weir");
}

static int count_row(void *self, const weir_dataset_cell *cells, size_t num_cells)
{
    for (size_t i = 0; i < num_cells; i++)
        if (cells[i].kind == WEIR_CELL_TEXT)
            *(size_t *)self += strlen(cells[i].text);
    return WEIR_OK;
}

static void read_dataset(weir_dataset *dataset)
{
    weir_error error = { 0 };
    uint32_t *classes = NULL;
    weir_sampler_items items = weir_dataset_items(dataset);
    if (reported(weir_dataset_read_classes(dataset, &classes, &error), &error) == WEIR_OK)
        for (uint64_t i = 0; i < weir_dataset_count(dataset); i++)
            require(classes[i] < weir_dataset_num_classes(dataset) && weir_dataset_class_name(dataset, classes[i]));
    free(classes);
    for (uint64_t i = 0; i < weir_dataset_count(dataset) && i < 20; i++) {
        weir_entry *entry = calloc(1, sizeof *entry);
        entry->number = i;
        error = (weir_error){ 0 };
        require(reported(items.fill(items.self, entry, &error), &error) != WEIR_OK || entry->path);
        weir_entry_free(entry);
    }
}

static void read_index(const uint8_t *data, size_t size)
{
    static const char *const conditions[] = { NULL, "label = 'cat'", "duration > 1" };
    const char *where = conditions[data[0] % COUNT(conditions)];
    weir_dataset *dataset;
    weir_error error = { 0 };
    size_t sum = 0;
    changed_database_write(&clips, "clips.weir", data + 1, size - 1);
    for (int question = WEIR_DATASET_SUMMARY; question <= WEIR_DATASET_CLIPS; question++)
        reported(weir_dataset_ask("clips.weir", (weir_dataset_question)question, where, count_row, &sum, &error),
                 &error);
    error = (weir_error){ 0 };
    if (reported(weir_dataset_open("clips.weir", &(weir_dataset_options){ .where = where }, &dataset, &error),
                 &error) == WEIR_OK) {
        read_dataset(dataset);
        weir_dataset_close(dataset);
    }
}

/* ---- command lines, one word in each line -------------------------------------------------------------------------- */

static void read_command_line(const uint8_t *data, size_t size)
{
    char *line = NULL;
    const char *text = (const char *)data;
    size_t length = strnlen(text, size), command = 0;
    while (command < length && text[command] != '\n')
        command++;
    /* the options are read, and nothing is done */
    require(asprintf(&line, "%.*s\n--help%.*s", (int)command, text, (int)(length - command), text + command) > 0);
    run_weir(line, '\n');
    free(line);
}

/* ---- messages of a child process ------------------------------------------------------------------------------------ */

static void send_message(int fd, const uint8_t *data, size_t size, int data_fd)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = { .header = {
                      .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int)) } };
    struct iovec part = { (void *)(uintptr_t)data, size };
    struct msghdr packet = { .msg_iov = &part, .msg_iovlen = 1 };
    if (data_fd >= 0) {
        memcpy(CMSG_DATA(&control.header), &data_fd, sizeof data_fd);
        packet.msg_control = &control;
        packet.msg_controllen = sizeof control;
    }
    require(sendmsg(fd, &packet, 0) == (ssize_t)size);
}

/* The first byte says whether memory comes with it. */
static void read_message(const uint8_t *data, size_t size)
{
    int ends[2];
    isolated_message message;
    weir_shared_data *blocks[WEIR_SHARED_BLOCKS] = { 0 }, *shared = data[0] % 2 ? weir__shared_data_new(4096) : NULL;
    require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
    send_message(ends[0], data + 1, size - 1, shared ? shared->fd : -1);
    if (weir__isolated_receive(ends[1], &(isolated_sender){ ISOLATED_CHILD, blocks, 0 }, &message)) {
        weir_item item = { 0 };
        weir__isolated_get_text(&message);
        if (weir__isolated_get_item(&message, &item))
            weir_item_release(&item);
    }
    weir__isolated_message_free(&message);
    for (int i = 0; i < WEIR_SHARED_BLOCKS; i++)
        weir__shared_data_drop(blocks[i]);
    weir__shared_data_release(shared);
    close(ends[0]);
    close(ends[1]);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    run_weir_init();
    weir_log_set_level(WEIR_LOG_ERROR);
    make_index();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const uint8_t *data,
                                   size_t size) = { read_trace, read_list,         read_archive,
                                                    read_index, read_command_line, read_message };
    if (size < 3)
        return -1;
    run_weir_clean();
    readers[data[0] % COUNT(readers)](data + 1, size - 1);
    return 0;
}
