/*
 * kmod.h - what the kernel and the files say about modules.
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

#define KMOD_NAME_MAX  64
#define KMOD_INDEX_MAX (16 * 1024 * 1024) /* bytes of one index file */

enum kmod_live {
	KMOD_NOT_LOADED,
	KMOD_COMING, /* its init function runs */
	KMOD_LOADED,
	KMOD_BUILT_IN,
	KMOD_LIVE_MAX,
};

enum kmod_index {
	KMOD_INDEX_UNKNOWN,    /* no /lib/modules/RELEASE to look into */
	KMOD_INDEX_UNREADABLE, /* it is hidden from us: just try */
	KMOD_INDEX_ABSENT,
	KMOD_INDEX_FILE, /* can be loaded */
	KMOD_INDEX_BUILT_IN,
};

bool kmod_name_is_valid(const char *name); /* [A-Za-z0-9_-]{1,63} */
bool kmod_name_equal(const char *a, const char *b);
/* Copies with '_' for '-'; `buf` has KMOD_NAME_MAX bytes. */
void kmod_name_fold(const char *name, char *buf);

bool kmod_sysfs_is_there(const char *root);
/* By sysfs, or without one (`sysfs` is false) by /proc/modules. */
enum kmod_live kmod_live(const char *root, bool sysfs, const char *name);

/* The running kernel's release; below a root its own file, if it has one. */
int kmod_release(const char *root, char *buf, size_t size);

/*
 * Looks one name up. *ret_real is the module that it is an alias of (by
 * modprobe.d, or by the index), or ""
 * (KMOD_NAME_MAX bytes).
 */
int kmod_index_find(const char *root, const char *release, const char *name,
		    enum kmod_index *ret_where, char *ret_real,
		    struct fault *f);

struct kmod_denial {
	char *name;
	char *cause; /* "/etc/modprobe.d/x.conf:3 (blacklist)" */
};

struct kmod_denials {
	struct kmod_denial *v;
	size_t n;
};

/* modprobe.d and the kernel command line. */
int kmod_denials_read(const char *root, struct kmod_denials *ret_denials,
		      struct fault *f);
const char *kmod_denials_find(const struct kmod_denials *d,
			      const char *name); /* cause or NULL */
void kmod_denials_done(struct kmod_denials *d);

/* kernel.modules_disabled is 1: nothing can be loaded until a reboot. */
bool kmod_loading_is_disabled(const char *root);

/* Built without loadable modules; nothing tells what is built in, then. */
bool kmod_loading_is_impossible(const char *root);

/* Why a module that is not loaded will not be. */
struct kmod_obstacle {
	const char *release;
	bool disabled, impossible; /* as above */
	const char *denied;	   /* cause, or NULL */
	enum kmod_index where;
};

/* The most telling cause, and its remedy; false: there is none. Pure. */
bool kmod_obstacle_text(const struct kmod_obstacle *o, char *buf, size_t size);
/*
 * For one module that others need: is it there (loaded or built in)? What
 * stands in its way, "" for nothing, is put into `buf`.
 */
bool kmod_is_there(const char *root, const char *name, char *buf, size_t size);
