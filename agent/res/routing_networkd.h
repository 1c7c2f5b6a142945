/*
 * routing_networkd.h - whether systemd-networkd leaves our rules and routes
 * alone (RT-01). By default it takes away every rule that is not its own,
 * and every foreign route on its links, at each start and reconfiguration.
 *
 * Reads its settings as networkd.conf(5) says: networkd.conf, then the
 * drop-ins in order. Since networkd reads them only when it starts, it also
 * finds the process, by its cgroup, and compares its start with the newest
 * change of any of these files (ctime, which no packager and no copy sets
 * back). What networkd really holds in memory cannot be asked for: this is
 * as near as one comes without trying it on the node's own rules. A clock
 * that was set back between the two can deceive it.
 *
 * Owns one file, ROUTING_NETWORKD_FILE. Never restarts networkd.
 */
#pragma once

#include <stdbool.h>

#include "common/clock.h"
#include "common/fault.h"

struct stamps;		/* agent/stamps.h */

#define ROUTING_NETWORKD_FILE "/etc/systemd/networkd.conf.d/90-garboard.conf"
#define ROUTING_NETWORKD_WHERE_MAX 192

enum routing_networkd_key {
	NETWORKD_RULES,		/* ManageForeignRoutingPolicyRules */
	NETWORKD_ROUTES,	/* ManageForeignRoutes */
	NETWORKD_KEY_MAX,
};

struct routing_networkd {
	bool installed;		/* else nothing below means anything */
	bool unreadable;	/* a file was: why is in `fault` */
	struct fault fault;
	struct {
		bool off;	/* "no": foreign objects are left alone */
		/* Who had the last word, "FILE:LINE"; "": the default. */
		char where[ROUTING_NETWORKD_WHERE_MAX];
	} keys[NETWORKD_KEY_MAX];
	bool written;		/* our file is there, as it should be */
	int pid;		/* 0: it does not run */
	usec started;		/* on the wall clock, and so is: */
	usec changed;		/* newest of its files; 0: none */
};

const char *routing_networkd_key_name(enum routing_networkd_key key);
/* All of it is "no" in the files. */
bool routing_networkd_opted_out(const struct routing_networkd *n);
/* The process runs by settings from before the files' last change. */
bool routing_networkd_is_late(const struct routing_networkd *n);

/* `root` as of rootpath.h, which /proc and /sys are below, too. */
void routing_networkd_see(const char *root, struct routing_networkd *ret);
int routing_networkd_write(const char *root, struct fault *f);
