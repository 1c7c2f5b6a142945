#include "agent/nl/nl_reply.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <string.h>

#define KERNEL_ERRNO_MAX 4095

/* The extended-ack text in `size` bytes of attributes, or NULL. */
static const char *ext_ack_text(const void *attrs, size_t size)
{
	const struct nlattr *a = attrs;
	int left = (int)size;

	while (mnl_attr_ok(a, left)) {
		if (mnl_attr_get_type(a) == NLMSGERR_ATTR_MSG &&
		    mnl_attr_validate(a, MNL_TYPE_NUL_STRING) >= 0)
			return mnl_attr_get_str(a);
		left -= (int)MNL_ALIGN(a->nla_len);
		a = mnl_attr_next(a);
	}
	return NULL;
}

/*
 * Where the attributes of an error message begin: behind the echoed
 * request, of which only the header comes back when the kernel capped it.
 */
static size_t ext_ack_offset(const struct nlmsghdr *nlh,
			     const struct nlmsgerr *e)
{
	size_t off = sizeof(*e);

	if (nlh->nlmsg_type == NLMSG_DONE)
		return sizeof(int);
	if (!(nlh->nlmsg_flags & NLM_F_CAPPED) &&
	    e->msg.nlmsg_len >= sizeof(e->msg))
		off += MNL_ALIGN(e->msg.nlmsg_len - sizeof(e->msg));
	return off;
}

int nl_reply_error(const struct nlmsghdr *nlh, struct fault *f)
{
	size_t size = mnl_nlmsg_get_payload_len(nlh);
	const char *payload = mnl_nlmsg_get_payload(nlh);
	const char *text = NULL;
	size_t off;
	int err;

	if (nlh->nlmsg_type == NLMSG_DONE && size < sizeof(int))
		return 0;
	if (size < (nlh->nlmsg_type == NLMSG_DONE ? sizeof(int) :
						    sizeof(struct nlmsgerr)))
		return fault_set(f, -EBADMSG, "netlink", "short error message");
	(void)memcpy(&err, payload, sizeof(err));
	/* A dump's end may carry its length there: only -errno counts. */
	if (err >= 0)
		return 0;
	if (err < -KERNEL_ERRNO_MAX)
		return fault_set(f, -EBADMSG, "netlink", "impossible error");
	off = ext_ack_offset(nlh, (const void *)payload);
	if ((nlh->nlmsg_flags & NLM_F_ACK_TLVS) && off < size)
		text = ext_ack_text(payload + off, size - off);
	if (text)
		return fault_errno(f, err, "kernel", "%s", text);
	return fault_errno(f, err, "kernel", "refused");
}

static void reply_end(struct nl_reply *r, int err)
{
	if (!r->err)
		r->err = err;
	r->done = true;
}

static void reply_message(struct nl_reply *r, const struct nlmsghdr *nlh)
{
	int err = 0;

	if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
		r->interrupted = true;
	switch (nlh->nlmsg_type) {
	case NLMSG_NOOP:
		return;
	case NLMSG_ERROR:
	case NLMSG_DONE:
		reply_end(r, nl_reply_error(nlh, r->fault));
		return;
	case NLMSG_OVERRUN:
		reply_end(r, -ENOBUFS);
		return;
	}
	if (r->handler)
		err = r->handler(nlh, r->userdata);
	if (err < 0 && !r->err)
		r->err = err;
}

void nl_reply_feed(struct nl_reply *r, const void *data, size_t size)
{
	const struct nlmsghdr *nlh = data;
	int left = (int)size;

	while (mnl_nlmsg_ok(nlh, left)) {
		if (nlh->nlmsg_seq == r->seq && nlh->nlmsg_pid == r->portid &&
		    !r->done)
			reply_message(r, nlh);
		nlh = mnl_nlmsg_next(nlh, &left);
	}
	if (left > 0 && !r->done)
		reply_end(r, fault_set(r->fault, -EBADMSG, "netlink",
				       "a datagram ends inside a message"));
}
