/*
 * modules_read.h - what the kernel and the files say about modules.
 *
 * Reads below a root, changes nothing. Names are compared with dash and
 * underscore being one. Sources: /sys/module, /proc/modules, the indexes of
 * /lib/modules/RELEASE (modules.dep, modules.builtin, modules.alias),
 * modprobe.d(5), the kernel command line.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/fault.h"
#include "common/strlist.h"

#define MODULE_NAME_MAX 64
#define MODULE_INDEX_MAX (16 * 1024 * 1024)	/* bytes of one index file */
#define MODULES_OWN_FILE "/etc/modules-load.d/garboard.conf"

enum module_live {
	MODULE_NOT_LOADED,
	MODULE_COMING,		/* its init function runs */
	MODULE_LOADED,
	MODULE_BUILT_IN,
	MODULE_LIVE_MAX,
};

enum module_index {
	MODULE_INDEX_UNKNOWN,	/* no /lib/modules/RELEASE to look into */
	MODULE_INDEX_UNREADABLE,	/* it is hidden from us: just try */
	MODULE_INDEX_ABSENT,
	MODULE_INDEX_FILE,	/* can be loaded */
	MODULE_INDEX_BUILT_IN,
};

bool module_name_is_valid(const char *name);	/* [A-Za-z0-9_-]{1,63} */
bool module_name_equal(const char *a, const char *b);
/* Copies with '_' for '-'; `buf` has MODULE_NAME_MAX bytes. */
void module_name_fold(const char *name, char *buf);

bool module_sysfs_is_there(const char *root);
/* By sysfs, or without one (`sysfs` is false) by /proc/modules. */
enum module_live module_live(const char *root, bool sysfs, const char *name);

/* The running kernel's release; below a root its own file, if it has one. */
int module_release(const char *root, char *buf, size_t size);

/*
 * Looks one name up. *ret_real is the module that it is an alias of, or ""
 * (MODULE_NAME_MAX bytes).
 */
int module_index_find(const char *root, const char *release,
		      const char *name, enum module_index *ret_where,
		      char *ret_real, struct fault *f);

struct module_denial {
	char *name;
	char *cause;		/* "/etc/modprobe.d/x.conf:3 (blacklist)" */
};

struct module_denials {
	struct module_denial *v;
	size_t n;
};

/* modprobe.d and the kernel command line. */
int module_denials_read(const char *root, struct module_denials *ret_denials,
			struct fault *f);
const char *module_denials_find(const struct module_denials *d,
				const char *name);	/* cause or NULL */
void module_denials_done(struct module_denials *d);

/* kernel.modules_disabled is 1: nothing can be loaded until a reboot. */
bool module_loading_is_disabled(const char *root);

/* Built without loadable modules; nothing tells what is built in, then. */
bool module_loading_is_impossible(const char *root);

/* The names in our own file; an absent file is an empty list. */
int module_own_read(const char *root, struct strlist *ret_names,
		    struct fault *f);
