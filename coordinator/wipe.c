#include "coordinator/wipe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "coordinator/ask.h"
#include "coordinator/cluster.h"
#include "coordinator/control_client.h"
#include "coordinator/members.h"
#include "proto/order.h"
#include "spec/spec.h"

/* Above what the agent takes to stop k3s and to remove its files. */
#define WIPE_TIME (240 * USEC_PER_SEC)
#define ASK_TIME (20 * USEC_PER_SEC)

int wipe_check(const struct kube_members *list, const char *name,
	       const struct ip_addr *address, struct fault *f)
{
	char text[IP_TEXT_MAX], host[IP_TEXT_MAX + 16];
	size_t i;

	ip_addr_format(address, text);
	(void)snprintf(host, sizeof(host), address->family == AF_INET6 ?
		       "https://[%s]:" : "https://%s:", text);
	for (i = 0; i < list->n; i++) {
		const struct kube_member *m = &list->v[i];

		if (!members_named_after(m->name, name) &&
		    strncmp(m->peer, host, strlen(host)) != 0)
			continue;
		if (m->name[0] && !m->learner)
			return fault_set(f, -EPERM, name,
					 "is a voting member of etcd; it is "
					 "not wiped");
		return fault_set(f, -EPERM, name,
				 "is counted by etcd as a member that still "
				 "joins; k3s removes one that makes no "
				 "progress after five minutes: wipe it then, "
				 "or let `garboard up` finish it");
	}
	return 0;
}

/* The first other server that answers knows the members. */
static int check_members(const struct spec *spec, struct control *control,
			 size_t node, struct fault *f)
{
	const struct spec_node *self = &spec->nodes[node];
	struct kube_members list = { 0 };
	struct fault scratch = FAULT_INIT;
	struct cluster *cluster = NULL;
	size_t i;
	int r = cluster_new(control, (uint16_t)spec->control_plane.port.v,
			    ASK_TIME, &cluster, f);
	bool asked = false;

	for (i = 0; r == 0 && !asked && i < spec->n_nodes; i++) {
		const char *name = spec->nodes[i].name.v;

		if (i == node || spec->nodes[i].role.v != SPEC_ROLE_SERVER)
			continue;
		fault_clear(&scratch);
		asked = cluster_credential(cluster, name, &scratch) > 0 &&
			cluster_members(cluster, name, &list, &scratch) == 0;
		if (scratch.err == -EINTR)
			r = fault_set(f, -EINTR, name, "%s", scratch.text);
	}
	(void)cluster_free(cluster);
	if (r == 0 && !asked)
		return fault_set(f, -EAGAIN, self->name.v,
				 "no other server could be asked whether it is "
				 "a member: %s. Nothing was changed",
				 scratch.err ? scratch.text :
				 "the spec has no other server");
	if (r == 0)
		r = wipe_check(&list, self->name.v, &self->address.v, f);
	kube_members_done(&list);
	return r;
}

/* Before the founding is complete nobody but the founder can be a member. */
static int check_founded(const struct spec *spec, struct control *control,
			 size_t node, struct fault *f)
{
	struct founding_record record = { 0 };
	struct fault scratch = FAULT_INIT;
	int r = control_founding_get(control, &record, &scratch);

	if (r < 0 && r != -ENOENT)
		return fault_set(f, r, scratch.object, "%s", scratch.text);
	if (r == 0 && record.cluster_uid[0])
		return check_members(spec, control, node, f);
	return 0;
}

int wipe_node(const struct spec *spec, struct control *control,
	      const char *name, bool check, struct fault *f)
{
	struct order *o;
	size_t i;
	int r;

	for (i = 0; i < spec->n_nodes; i++)
		if (strcmp(spec->nodes[i].name.v, name) == 0)
			break;
	if (i == spec->n_nodes || spec->nodes[i].role.v != SPEC_ROLE_SERVER)
		return fault_set(f, -ENOENT, name, "is no server of the spec");
	if (!spec->k3s.manage.v)
		return fault_set(f, -EPERM, name, "k3s.manage is false: its "
				 "k3s is not Garboard's to wipe");
	r = check_founded(spec, control, i, f);
	if (r < 0 || check)
		return r;
	o = order_new(ORDER_K3S_RESET);
	if (!o)
		return -ENOMEM;
	(void)snprintf(o->confirm_node, sizeof(o->confirm_node), "%s", name);
	r = ask(control, name, o, WIPE_TIME, NULL, f);
	(void)order_free(o);
	if (r == 0)
		(void)control_event(control, "wipe", name, "k3s was wiped",
				    NULL);
	return r;
}
