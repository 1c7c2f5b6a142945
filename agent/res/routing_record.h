/*
 * routing_record.h - the last addresses each tunnel was seen with, kept in
 * state_dir/ours/routing (record.h).
 */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/kept.h"
#include "common/fault.h"
#include "common/ip.h"

#define ROUTING_ADDRESSES_MAX 256

struct routing_address {
	char tunnel[IF_NAMESIZE];
	struct ip_addr addr;
};

struct routing_record {
	struct routing_address v[ROUTING_ADDRESSES_MAX];
	size_t n;
	bool previous;		/* it is the copy before a damaged one */
};

/* Absent: an empty record. Damaged, and no copy before it: -EBADMSG. */
int routing_record_load(const char *state_dir, struct routing_record *ret,
			struct fault *f);
/* The same, for who loads it again and again. */
int routing_record_load_kept(struct kept *kept, const char *state_dir,
			     struct routing_record *ret, struct fault *f);
int routing_record_save(const char *state_dir, const struct routing_record *r,
			struct fault *f);

/* The text of the record, which routing_record_parse() takes; it is cut up. */
#define ROUTING_RECORD_TEXT_MAX (ROUTING_ADDRESSES_MAX * 96)
size_t routing_record_format(const struct routing_record *r,
			     char text[ROUTING_RECORD_TEXT_MAX]);
int routing_record_parse(char *text, struct routing_record *ret);

/* -E2BIG. An address that is there already is not added again. */
int routing_record_add(struct routing_record *r, const char *tunnel,
		       const struct ip_addr *addr);
bool routing_record_equal(const struct routing_record *a,
			  const struct routing_record *b);
