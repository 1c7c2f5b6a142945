/*
 * killswitch_plan.h - what the kill-switch saw, and the pure plan from it.
 */
#pragma once

#include "agent/armed.h"
#include "agent/nl/nft.h"
#include "agent/nl/rtnl.h"
#include "agent/res/resource.h"

struct killswitch_seen {
	unsigned int refs;
	struct armed record;
	char *record_text;		/* as it stands in the file, or NULL */
	struct fault record_fault;	/* err 0: the record was read */
	struct rtnl_links links;
	struct fault links_fault;
	struct strlist renamed;		/* uplinks under other names now */
	struct nft_view *view;		/* NULL with a fault */
	struct fault tables_fault;
	bool own;		/* tables shall be owned by `portid` */
	uint32_t portid;
};

/* Keys of items and changes. */
#define KILLSWITCH_KEY_RECORD "armed record"
#define KILLSWITCH_KEY_MAX 96

/* "table inet garboard" and so on; the op says what is done to it. */
const char *killswitch_key(uint8_t family, const char *name, char *buf);
/* "owner of table ..." */
const char *killswitch_owner_key(uint8_t family, const char *name, char *buf);

int killswitch_plan(const struct desired *want, const void *seen,
		    struct item_list *items, struct change_list *changes,
		    struct fault *f);
