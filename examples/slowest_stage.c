/* slowest_stage: prints the pipeline of minimal.c, and measures each of its stages alone on the videos below a folder. */
#include <stdio.h>

#include <weir/weir.h>

static void print_result(void *self, const weir_profile_result *result)
{
    weir_profile_result *slowest = self;
    printf("%-8s %3u slots %10.1f items/s %9.2f ms CPU each %6.2f x\n", result->name, result->slots,
           result->items_per_s, 1000 * result->cpu_per_item_s, result->gain);
    if (result->is_own && (!slowest->slots || result->source_items_per_s < slowest->source_items_per_s))
        *slowest = *result;
}

int main(int argc, char **argv)
{
    weir_standard_files_open();
    weir_directory_config folder = { .root = argc > 1 ? argv[1] : ".", .glob = WEIR_VIDEO_FILES };
    weir_video_config picture = { WEIR_WITH_PICTURE(.width = 128, .height = 128) };

    weir_builder *builder = weir_builder_new();
    weir_source_directory(builder, &folder, &(weir_stage_options){ .threads = 1 });
    weir_pipe_video(builder, &picture, &(weir_stage_options){ .concurrency = 4 });
    weir_builder_sink(builder, NULL);
    weir_builder_print(builder, stdout);

    weir_profile_result slowest = { 0 };
    weir_error error = { 0 };
    int status = weir_profile(builder, NULL, print_result, &slowest, &error);
    if (status == WEIR_OK)
        printf("%s is the slowest: give it other slots, or make it cheaper.\n", slowest.name);
    else
        fprintf(stderr, "slowest_stage: %s\n", error.message);
    weir_builder_free(builder); /* or build it */
    return status == WEIR_OK ? 0 : 1;
}
