/* weir-child: the program that weir_isolated starts. Users have no reason to run it. */
#include <stdio.h>

#include <weir/isolated.h>
#include <weir/output.h>

int main(int argc, char *argv[])
{
    weir_standard_files_open();
    weir_isolated_serve(argc, argv, NULL, 0);
    fputs("weir-child: decodes for weir_isolated, which starts it; see weir/isolated.h\n", stderr);
    return 2;
}
