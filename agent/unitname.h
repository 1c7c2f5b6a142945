/*
 * unitname.h - the name of the unit that stands for a path, as
 * "systemd-escape --path" makes it. Pure.
 */
#pragma once

#define UNITNAME_MAX 256

/*
 * "/dev/disk/by-id/a" and ".swap": "dev-disk-by\x2did-a.swap". -EINVAL for a
 * path that is not absolute or has "." or ".." in it, -ENAMETOOLONG.
 */
int unitname_from_path(const char *path, const char *suffix,
		       char ret_name[UNITNAME_MAX]);
