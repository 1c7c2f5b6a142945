/*
 * iscsid_read.h - the files that say whether a node can be an iSCSI
 * initiator. Reads below a root; iscsid_write_name() replaces the one file.
 * Sources: K3S-CONTRACT 8, FACTS S12.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/fault.h"

#define ISCSID_NAME_MAX 224		/* RFC 3720: 223 bytes */
#define ISCSID_NAME_FILE "/etc/iscsi/initiatorname.iscsi"
#define ISCSID_NAME_PREFIX "iqn.1993-08.org.debian:01:"

enum iscsid_name {
	ISCSID_NAME_ABSENT,		/* no file */
	ISCSID_NAME_PLACEHOLDER,	/* a file without a name to use */
	ISCSID_NAME_INVALID,		/* a name that targets refuse */
	ISCSID_NAME_VALID,
	ISCSID_NAME_UNREADABLE,
};

/* iqn.YYYY-MM.name[:anything], eui. and 16 hex, naa. and 16 or 32 hex. */
bool iscsid_name_is_valid(const char *name);

/* Judges the text of the file (which is changed). */
enum iscsid_name iscsid_name_parse(char *text, char *ret_name);
/* Reads and judges the file; `ret_name` has ISCSID_NAME_MAX bytes. */
enum iscsid_name iscsid_name_read(const char *root, char *ret_name,
				  int *ret_err);
/* A fresh name of random digits, mode 0600; makes the directory. */
int iscsid_name_write(const char *root, struct fault *f);

bool iscsid_is_installed(const char *root);
/* Live sessions; negative errno when that cannot be told. */
int iscsid_sessions(const char *root);
/* multipath.conf denies the devices that Longhorn makes ("^sd"). */
bool iscsid_multipath_is_tamed(const char *root);
