/*
 * timezone_read.h - which time zone a node has, and which it could have.
 *
 * Reads /etc/localtime (a link or a copy), /etc/timezone and zoneinfo below
 * a root; two names with the same data are one zone (TZ-01). Changes
 * nothing but by timezone_link() and timezone_file(), which replace one
 * file each.
 */
#pragma once

#include <stdbool.h>

#include "common/fault.h"

#define TIMEZONE_NAME_MAX 128
#define TIMEZONE_DATA_MAX (256 * 1024)	/* bytes of one zone's file */
#define TIMEZONE_LOCALTIME "/etc/localtime"
#define TIMEZONE_FILE "/etc/timezone"

enum timezone_kind {
	TIMEZONE_ABSENT,
	TIMEZONE_LINK,
	TIMEZONE_COPY,		/* a regular file, or a link elsewhere */
	TIMEZONE_UNREADABLE,
};

struct timezone_seen {
	enum timezone_kind kind;
	int err;			/* of TIMEZONE_UNREADABLE */
	char zone[TIMEZONE_NAME_MAX];	/* by the link; "" unknown */
	bool dangling;
	bool same;			/* is the wanted zone, or its data */
	bool has_file;			/* /etc/timezone exists */
	char file[TIMEZONE_NAME_MAX];
	bool file_same;
	bool zoneinfo;			/* zoneinfo is installed at all */
	bool exists;			/* the wanted zone is installed */
	char canonical[TIMEZONE_NAME_MAX];	/* of an old name, or "" */
	bool cron;			/* it is being restarted */
	bool setting;			/* we asked, and it is not over */
	char failed[FAULT_TEXT_MAX];	/* why our last attempt failed */
};

/*
 * The pattern of A02, and no component "." or ".."; not "right/", whose
 * clocks count leap seconds. Whether the zone exists is the node's to say.
 */
bool timezone_name_is_valid(const char *name);

/* `want` may be invalid: it is then not looked for. */
void timezone_see(const char *root, const char *want,
		  struct timezone_seen *ret_seen);

/* The link of systemd, "../usr/share/zoneinfo/NAME", put in place at once. */
int timezone_link(const char *root, const char *zone, struct fault *f);
int timezone_file(const char *root, const char *zone, struct fault *f);
