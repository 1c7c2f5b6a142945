/*
 * modules_plan.h - what was seen of the modules, and what is to be done.
 * Pure. Two items per module: NAME (loaded now) and "NAME (persisted)".
 */
#pragma once

#include "agent/kmod.h"
#include "agent/res/resource.h"

#define MODULES_OWN_FILE "/etc/modules-load.d/garboard.conf"
#define MODULES_PERSISTED " (persisted)"

struct module_seen {
	char *name;		/* as the spec wrote it */
	enum kmod_live live;
	enum kmod_index where;	/* looked up only when not loaded */
	char real[KMOD_NAME_MAX];	/* what an alias stands for, or "" */
	char *denied;		/* cause, or NULL; loaded or not */
	char *drift;		/* a parameter that is not as asked, or NULL */
	bool loading;		/* we asked, and it is not over */
	char *failed;		/* why our last attempt failed, or NULL */
};

struct modules_seen {
	struct module_seen *v;
	size_t n;
	struct strlist own;
	int own_err;
	bool sysfs;		/* there is a /sys/module to look into */
	bool loading_disabled, loading_impossible;
	char release[128];
};

const struct module_seen *modules_seen_find(const struct modules_seen *seen,
					    const char *name);
void modules_seen_free(void *seen);

int modules_plan(const struct desired *want, const void *seen,
		 struct item_list *items, struct change_list *changes,
		 struct fault *f);

/* Our file as it is to be; *ret_text is the caller's (free). */
int modules_render(const struct desired *want,
		   const struct modules_seen *seen, char **ret_text,
		   size_t *ret_size);
