#include "stats/record/process_info.h"
#include "common/redact.h"
#include "common/text_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

char *weir__host_name(void)
{
    char name[UV_MAXHOSTNAMESIZE];
    size_t size = sizeof name;
    return strdup(uv_os_gethostname(name, &size) == 0 ? name : "");
}

/* Writes one argument quoted for the shell, with a space before all but the first. */
static void put_argument(FILE *out, const char *argument, int is_first)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-+=:,@%";
    if (!is_first)
        fputc(' ', out);
    if (*argument && argument[strspn(argument, plain)] == '\0') {
        fputs(argument, out);
        return;
    }
    fputc('\'', out);
    for (; *argument; argument++)
        if (*argument == '\'')
            fputs("'\\''", out);
        else
            fputc(*argument, out);
    fputc('\'', out);
}

/* Copies the arguments, each of which ends with a NUL, without the secrets of URLs. */
static void put_arguments(FILE *out, FILE *in)
{
    char *argument = NULL;
    size_t size = 0;
    for (int is_first = 1; getdelim(&argument, &size, '\0', in) > 0; is_first = 0) {
        weir__address_redact(argument);
        put_argument(out, argument, is_first);
    }
    free(argument);
}

char *weir__command_line(const char *given)
{
    FILE *in = given ? NULL : fopen("/proc/self/cmdline", "re");
    if (!in) {
        char *copy = strdup(given ? given : "");
        weir__text_redact(copy);
        return copy;
    }
    char *text = NULL;
    size_t size;
    FILE *out = weir__text_stream(&text, &size);
    if (out) {
        put_arguments(out, in);
        fclose(out);
    }
    fclose(in);
    return text;
}

char *weir__machine_text(void)
{
    uv_utsname_t system;
    uv_cpu_info_t *cpus = NULL;
    int num_cpus = 0;
    char *text = NULL;
    if (uv_os_uname(&system) != 0)
        return strdup("");
    if (uv_cpu_info(&cpus, &num_cpus) != 0)
        num_cpus = 0;
    int length = asprintf(&text, "%s %s %s, %d CPUs%s%s%s, %.1f GB", system.sysname, system.release, system.machine,
                          num_cpus, num_cpus ? " (" : "", num_cpus ? cpus[0].model : "", num_cpus ? ")" : "",
                          (double)uv_get_total_memory() / 1e9);
    uv_free_cpu_info(cpus, num_cpus);
    return length < 0 ? NULL : text;
}
