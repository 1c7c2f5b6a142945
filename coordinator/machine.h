/*
 * machine.h - an existing machine that is to become a node: what was found
 * on it, as lines of text, and the decision what may be done. Pure; nothing
 * is read, written or logged. The scripts that find and do it are here too,
 * since they and the parser are one agreement; ssh.h runs them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/fault.h"

struct machine {
	bool root;		/* the login is root's */
	bool sudo;		/* or may become root without a password */
	bool systemd;		/* is what runs there */
	bool enrolled;		/* has a certificate of its cluster */
	char login[33];
	char os[65];		/* "debian 12" */
	char arch[33];		/* of dpkg; "" without dpkg */
	char hostname[65];
	char agent[65];		/* version of what is installed, or "" */
	char cluster[33];	/* id, of the bundle that lies there, or "" */
	char node_id[33];	/* of the identity, as the agent says; or "" */
};

/* What the coordinator knows that matters for it. */
struct machine_case {
	const char *cluster_id;		/* ours, hex */
	const char *name;		/* that it shall have */
	bool known;			/* node_id is a node of ours */
	const char *known_as;		/* its name, if known, else NULL */
	const char *bad;		/* why no orders go to it, or NULL */
	bool name_taken;		/* by another node than this machine */
};

enum machine_verdict {
	MACHINE_SET_UP,		/* bundle, units */
	MACHINE_KEEP,		/* it is a node already: only see that it runs */
	MACHINE_VERDICT_MAX,
};

/* Each without a single quote (ssh.h). */
extern const char machine_probe[];
/* Reads "SHA256\n", then the package. Prints "same V", "new V", "up V". */
extern const char machine_install[];
/* Reads ca.pem, ".", bundle, "."; all of it happens or nothing does. */
extern const char machine_bundle[];
extern const char machine_start[];	/* enables and starts what is there */
extern const char machine_why[];	/* why it has no session, one line */

/* -EPROTO: not what machine_probe prints. */
int machine_parse(const char *text, struct machine *ret_machine,
		  struct fault *f);

/* Can it be a node at all? `deb`: a package was given. -EOPNOTSUPP: no. */
int machine_usable(const struct machine *m, bool deb, struct fault *f);

/* May it be this one? -EACCES: refused. */
int machine_judge(const struct machine *m, const struct machine_case *c,
		  enum machine_verdict *ret_verdict, struct fault *f);
