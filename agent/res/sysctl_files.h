/*
 * sysctl_files.h - names and values of sysctls, and what the files of
 * sysctl.d(5) say about them.
 *
 * Knows the two spellings of a key, which values are equal, and which line
 * of which file wins at boot. Reads files only; /proc/sys is elsewhere.
 * Source: sysctl.d(5), systemd-sysctl of 252 and 257 (FACTS S5).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/fault.h"

#define SYSCTL_KEY_MAX 256
#define SYSCTL_VALUE_MAX 1000	/* longer values do not fit a change */
#define SYSCTL_LINES_MAX 16384
#define SYSCTL_OWN_FILE "/etc/sysctl.d/90-garboard.conf"

struct sysctl_line {
	char *file;		/* as on the node; path, value are its piece */
	unsigned int line;
	char *path;		/* canonical, may hold a glob */
	char *value;		/* folded; NULL: "-key", out of all globs */
};

struct sysctl_lines {
	struct sysctl_line *v;
	size_t n;
};

#define SYSCTL_LINES_INIT ((struct sysctl_lines){ NULL, 0 })

/*
 * "net.ipv4.conf.eth0/5.rp_filter" and "net/ipv4/conf/eth0.5/rp_filter" both
 * give the second form, the path below /proc/sys. -EINVAL for empty, "." or
 * ".." components and control characters, -ENAMETOOLONG.
 */
int sysctl_key_path(const char *key, char *buf, size_t size);
bool sysctl_is_glob(const char *path);

/*
 * Is it a key of one network link, "net/ipv4/conf/eth0.100/rp_filter"? The
 * length of what names the link ("net/ipv4/conf/eth0.100"), or 0. Keys of
 * "all" and "default" are everybody's.
 */
size_t sysctl_key_link(const char *path);
/* One name too many there: a dot of a link's name was not swapped. */
bool sysctl_key_splits_link(const char *path);

/* Whitespace between words becomes one blank, none at the ends. In place. */
void sysctl_fold(char *text);
/* Folded texts; numbers by value ("0x10" is "16"), word by word. */
bool sysctl_value_equal(const char *a, const char *b);
/* Two paths that are one knob (ip_forward, conf/all/forwarding). */
bool sysctl_same_knob(const char *a, const char *b);

/* Appends the assignments of one file's text (which is changed). */
int sysctl_lines_parse(const char *file, char *text,
		       struct sysctl_lines *lines);
/* All files in their order. What could not be read: error, rest is there. */
int sysctl_lines_read(const char *root, struct sysctl_lines *lines,
		      struct fault *f);
int sysctl_lines_copy(const struct sysctl_lines *lines,
		      struct sysctl_lines *ret_copy);
void sysctl_lines_done(struct sysctl_lines *lines);

/* Our own file's line for that path (the last one), or NULL. */
const struct sysctl_line *sysctl_lines_own(const struct sysctl_lines *lines,
					   const char *path);
/* Our own file's "-path": out of all wildcards. */
bool sysctl_lines_own_exclude(const struct sysctl_lines *lines,
			      const char *path);
/*
 * The line that decides about one key at boot, or NULL: an explicit one (a
 * NULL value takes the key out of all wildcards), else the wildcard that is
 * applied last.
 */
const struct sysctl_line *sysctl_lines_boot(const struct sysctl_lines *lines,
					    const char *path);
/*
 * The line that wins over ours at boot with another value, or NULL. A glob
 * never does: systemd-sysctl prefers an explicit key wherever it stands.
 */
const struct sysctl_line *
sysctl_lines_override(const struct sysctl_lines *lines, const char *path,
		      const char *value);
