/*
 * nft_msg.h - nftables messages to values. Pure and bounds-checked.
 *
 * Every function takes one message of the kind it names and returns 0 or
 * -EBADMSG (malformed) or -ENOMEM, -E2BIG. What the model does not know is
 * never an error: it is marked there. A rule or set of another table than
 * the one given is skipped.
 */
#pragma once

#include <linux/netlink.h>

#include "agent/nl/nft_model.h"

/* NFT_MSG_NEWTABLE: family, name, flags, owner and use. */
int nft_table_decode(const struct nlmsghdr *nlh, struct nft_table *ret_head);

/* Append to the table; NFT_MSG_NEWCHAIN, NEWRULE, NEWSET, NEWSETELEM. */
int nft_chain_decode(const struct nlmsghdr *nlh, struct nft_table *t);
int nft_rule_decode(const struct nlmsghdr *nlh, struct nft_table *t);
int nft_set_decode(const struct nlmsghdr *nlh, struct nft_table *t);

/* Interval ends as the kernel keeps them, of one set. */
struct nft_bound {
	uint8_t key[16];
	bool end;		/* the first address behind a range */
};

struct nft_bounds {
	struct nft_bound *v;
	size_t n;
	bool odd;
};

int nft_bounds_decode(const struct nlmsghdr *nlh, struct nft_bounds *b);
/* Turns all of them into the set's ranges; may set `odd`. */
int nft_bounds_join(struct nft_bounds *b, struct nft_set *s);

/* NFT_MSG_NEWGEN: who committed. */
struct nft_gen {
	uint32_t id;
	uint32_t pid;		/* thread, in the initial namespace; 0 */
	char name[16];
};

int nft_gen_decode(const struct nlmsghdr *nlh, struct nft_gen *ret_gen);

/* The table any nftables message is about; NULL if it names none. */
const char *nft_msg_table(const struct nlmsghdr *nlh);

/* Low 16 bits of the generation a listing is of. */
uint16_t nft_msg_generation(const struct nlmsghdr *nlh);
