#include "coordinator/members.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/cluster.h"
#include "coordinator/control_client.h"
#include "coordinator/k3s_server.h"
#include "proto/up.h"
#include "spec/spec.h"

static const struct kube_member *find_member(const struct kube_members *m,
					     const char *etcd_name)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		if (etcd_name[0] && strcmp(m->v[i].name, etcd_name) == 0)
			return &m->v[i];
	return NULL;
}

/* Both views must agree: the member list and the node's own condition. */
static void judge(const char *name, const struct kube_members *list,
		  const struct kube_nodes *nodes, struct member_state *s)
{
	const struct kube_node *n = kube_nodes_find(nodes, name);
	const struct kube_member *m;

	if (!n) {
		(void)snprintf(s->why, sizeof(s->why), "is no node yet");
		return;
	}
	m = find_member(list, n->etcd_name);
	if (!m)
		(void)snprintf(s->why, sizeof(s->why), "is no etcd member");
	else if (m->learner)
		(void)snprintf(s->why, sizeof(s->why),
			       "is still an etcd learner");
	else if (n->voter != KUBE_TRUE)
		(void)snprintf(s->why, sizeof(s->why),
			       "condition EtcdIsVoter is not True yet");
	else
		s->voter = true;
}

/*
 * k3s names its member NODE-XXXXXXXX, hexadecimal. A server that was ended
 * while it joined votes before its node is registered: it is no stranger.
 */
bool members_named_after(const char *member, const char *node)
{
	size_t n = strlen(node);

	return strncmp(member, node, n) == 0 && member[n] == '-' &&
	       strlen(member + n + 1) == 8 &&
	       strspn(member + n + 1, "0123456789abcdef") == 8;
}

static bool known_member(const struct spec *spec,
			 const struct kube_nodes *nodes,
			 const struct kube_member *m)
{
	size_t i;

	for (i = 0; i < spec->n_nodes; i++)
		if (spec->nodes[i].role.v == SPEC_ROLE_SERVER &&
		    members_named_after(m->name, spec->nodes[i].name.v))
			return true;

	for (i = 0; i < nodes->n; i++)
		if (strcmp(nodes->v[i].etcd_name, m->name) == 0)
			return true;
	return false;
}

static int read_through(const struct step_env *env, const char *node,
			struct members *m, struct fault *f)
{
	struct kube_members list = { 0 };
	struct kube_nodes nodes = { 0 };
	struct kube *k = NULL;
	size_t i;
	int r = cluster_kube(env->cluster, node, STREAM_API_LOCAL, NULL, &k,
			     f);

	if (r == 0)
		r = cluster_ready(k, f);
	if (r == 0)
		r = cluster_members(env->cluster, node, &list, f);
	if (r == 0)
		r = cluster_nodes(k, &nodes, f);
	if (r == 0) {
		m->api = true;
		(void)snprintf(m->through, sizeof(m->through), "%s", node);
		m->total = list.n;
		for (i = 0; i < list.n; i++) {
			if (list.v[i].learner || !list.v[i].name[0])
				m->learners++;
			else
				m->voters++;
			/* An unstarted member is nobody's yet. */
			if (list.v[i].name[0] && !list.v[i].learner &&
			    !known_member(env->spec, &nodes, &list.v[i]))
				m->strangers = true;
		}
		for (i = 0; i < m->n; i++)
			if (env->spec->nodes[i].role.v == SPEC_ROLE_SERVER)
				judge(env->spec->nodes[i].name.v, &list,
				      &nodes, &m->v[i]);
	}
	kube_members_done(&list);
	kube_nodes_done(&nodes);
	return r;
}

/* A server whose k3s is not active cannot be asked: no stream is wasted. */
static bool worth_asking(const struct control_nodes *nodes, const char *name)
{
	const struct control_node *n = control_nodes_find(nodes, name);

	return n && n->connected && n->report &&
	       k3s_server_active(&n->report->report.k3s);
}

static int try_server(const struct step_env *env,
		      const struct control_nodes *nodes, const char *name,
		      struct members *m)
{
	struct fault scratch = FAULT_INIT;
	int r;

	if (!worth_asking(nodes, name)) {
		if (!m->why[0])
			(void)snprintf(m->why, sizeof(m->why),
				       "k3s is active on no server");
		return 0;
	}
	r = cluster_credential(env->cluster, name, &scratch);
	if (r == 0)
		(void)snprintf(m->why, sizeof(m->why),
			       "%s has no admin credential yet", name);
	if (r > 0)
		r = read_through(env, name, m, &scratch);
	if (r == -EINTR || r == -ENOMEM || r == -EPIPE)
		return r;
	if (r < 0)
		(void)fault_str(&scratch, m->why, sizeof(m->why));
	return 0;
}

int members_read(const struct step_env *env, const char *first,
		 struct members *ret_members, struct fault *f)
{
	struct members m = { .n = env->spec->n_nodes };
	struct control_nodes nodes = { 0 };
	size_t i, pass;
	int r;

	m.v = calloc(m.n + 1, sizeof(*m.v));
	r = m.v ? control_nodes(env->control, &nodes, f) : -ENOMEM;
	for (pass = 0; r == 0 && pass < 2; pass++) {
		for (i = 0; r == 0 && i < m.n && !m.api; i++) {
			const char *name = env->spec->nodes[i].name.v;
			bool is_first = first && strcmp(name, first) == 0;

			if (env->spec->nodes[i].role.v == SPEC_ROLE_SERVER &&
			    is_first == (pass == 0))
				r = try_server(env, &nodes, name, &m);
		}
	}
	control_nodes_done(&nodes);
	if (r < 0) {
		members_done(&m);
		return fault_set(f, r, "members", "cannot be read");
	}
	*ret_members = m;
	return 0;
}

void members_done(struct members *m)
{
	free(m->v);
	*m = (struct members){ 0 };
}

int members_any_voter(const struct step_env *env, const struct members *m,
		      const char *first, size_t *ret_node)
{
	size_t i;
	int found = -ENOENT;

	for (i = 0; i < m->n; i++) {
		if (!m->v[i].voter)
			continue;
		if (found < 0 || strcmp(env->spec->nodes[i].name.v, first) == 0)
			*ret_node = i;
		found = 0;
	}
	return found;
}

int members_open_api(const struct step_env *env, const char *what,
		     char ret_through[MEMBERS_NODE_MAX], struct kube **ret_kube,
		     struct fault *f)
{
	struct members m = { 0 };
	int r = members_read(env, NULL, &m, f);

	if (r < 0)
		return r;
	if (!m.api)
		r = fault_set(f, -EREMOTEIO, what, "no API answers: %s",
			      m.why);
	(void)snprintf(ret_through, MEMBERS_NODE_MAX, "%s", m.through);
	members_done(&m);
	return r < 0 ? r : cluster_kube(env->cluster, ret_through,
					STREAM_API_LOCAL, NULL, ret_kube, f);
}
