/* Archives, in a build without libarchive. */
#include "dataset/index/tar_members.h"

int weir__tar_members_open(weir_tar_members *tar, const char *path, weir_error *error)
{
    (void)path;
    *tar = (weir_tar_members){ 0 };
    return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "weir was built without libarchive");
}

int weir__tar_members_next(weir_tar_members *tar, weir_error *error)
{
    (void)tar;
    return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "weir was built without libarchive");
}

void weir__tar_members_close(weir_tar_members *tar)
{
    (void)tar;
}
