#include "coordinator/fleet_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/log.h"

#define FLUSH_EVERY USEC_PER_SEC
#define SWEEP_EVERY (5 * USEC_PER_SEC)
/* Whoever is told lists all nodes again: the more nodes, the less often. */
#define NOTIFY_AFTER (20 * USEC_PER_MSEC)
#define NOTIFY_PER_NODE (USEC_PER_MSEC / 5)
#define ACCURACY (100 * USEC_PER_MSEC)
#define SEQUENCE_BLOCK 64	/* order numbers taken from disk at once */

static struct fleet_node *node_free(struct fleet_node *n)
{
	if (!n)
		return NULL;
	dispatch_fail_all(n, -ESHUTDOWN, "the coordinator ends");
	store_node_done(&n->row);
	free(n);
	return NULL;
}

static int compare_id(const void *key, const void *member)
{
	const struct fleet_node *const *n = member;

	return memcmp(key, (*n)->row.id, sizeof((*n)->row.id));
}

struct fleet_node *fleet_by_id(struct fleet *fleet, const uint8_t id[16])
{
	struct fleet_node **at;

	if (fleet->n_nodes == 0)
		return NULL;
	at = bsearch(id, fleet->nodes, fleet->n_nodes, sizeof(*at), compare_id);
	return at ? *at : NULL;
}

struct fleet_node *fleet_by_name(struct fleet *fleet, const char *name)
{
	for (size_t i = 0; i < fleet->n_nodes; i++) {
		struct fleet_node *n = fleet->nodes[i];

		if (n->row.state == STORE_NODE_ACTIVE &&
		    strcmp(n->row.name, name) == 0)
			return n;
	}
	return NULL;
}

struct fleet_node *fleet_by_key(struct fleet *fleet, const uint8_t key[32])
{
	for (size_t i = 0; i < fleet->n_nodes; i++) {
		struct fleet_node *n = fleet->nodes[i];

		if (memcmp(n->row.report_key, key, 32) == 0)
			return n;
	}
	return NULL;
}

struct fleet_node *fleet_by_machine(struct fleet *fleet, const char *machine_id,
				    const uint8_t not_this[16])
{
	if (!machine_id[0])
		return NULL;
	for (size_t i = 0; i < fleet->n_nodes; i++) {
		struct fleet_node *n = fleet->nodes[i];

		if (n->row.state != STORE_NODE_ACTIVE ||
		    (not_this && memcmp(n->row.id, not_this, 16) == 0))
			continue;
		if (strcmp(n->row.machine_id, machine_id) == 0)
			return n;
	}
	return NULL;
}

size_t fleet_count(const struct fleet *fleet)
{
	return fleet->n_nodes;
}

struct fleet_node *fleet_at(struct fleet *fleet, size_t index)
{
	return fleet->nodes[index];
}

const char *fleet_peer(const struct fleet_node *n)
{
	return n->session ? session_peer(n->session) : "";
}

/* Takes the row's blobs. */
static int insert(struct fleet *fleet, struct store_node *row)
{
	struct fleet_node *n;
	size_t at = fleet->n_nodes;

	if (fleet->n_nodes >= STORE_NODES_MAX)
		return -E2BIG;
	if (fleet->n_nodes == fleet->room) {
		size_t room = fleet->room ? 2 * fleet->room : 64;
		void *grown = reallocarray(fleet->nodes, room,
					   sizeof(*fleet->nodes));

		if (!grown)
			return -ENOMEM;
		fleet->nodes = grown;
		fleet->room = room;
	}
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	n->row = *row;
	while (at > 0 && compare_id(row->id, &fleet->nodes[at - 1]) < 0)
		at--;
	memmove(&fleet->nodes[at + 1], &fleet->nodes[at],
		(fleet->n_nodes - at) * sizeof(*fleet->nodes));
	fleet->nodes[at] = n;
	fleet->n_nodes++;
	return 0;
}

static int on_row(struct store_node *row, void *arg)
{
	int r = insert(arg, row);

	if (r < 0)
		store_node_done(row);
	return r;
}

int fleet_add(struct fleet *fleet, struct store_node *row, struct fault *f)
{
	int r;

	r = store_node_add(fleet->store, row, f);
	if (r < 0)
		return r;
	r = insert(fleet, row);
	if (r < 0)
		return fault_errno(f, r, row->name, "cannot keep the node");
	*row = (struct store_node){ 0 };
	fleet_changed(fleet);
	return 0;
}

int fleet_save(struct fleet *fleet, struct fleet_node *n, struct fault *f)
{
	int r = store_node_update(fleet->store, &n->row, f);

	if (r == 0)
		n->dirty = false;
	fleet_changed(fleet);
	return r;
}

int fleet_revoke(struct fleet *fleet, struct fleet_node *n, struct fault *f)
{
	int r;

	n->row.state = STORE_NODE_REVOKED;
	/* Also when the disk is full: the session must not go on. */
	session_close_node(fleet, n, -EACCES, "the node was revoked");
	dispatch_fail_all(n, -EACCES, "the node was revoked");
	r = fleet_save(fleet, n, f);
	if (r < 0)
		return r;
	journal_note(fleet->journal, "enrolment", n->row.name, "revoked");
	return 0;
}

/* ---- change ---- */

uint64_t fleet_revision(const struct fleet *fleet)
{
	return fleet->revision;
}

void fleet_notify(struct fleet *fleet)
{
	int enabled = SD_EVENT_ON;
	usec after = NOTIFY_AFTER + fleet->n_nodes * NOTIFY_PER_NODE;

	(void)sd_event_source_get_enabled(fleet->notify, &enabled);
	if (enabled != SD_EVENT_OFF)
		return;
	(void)sd_event_source_set_time_relative(fleet->notify, after);
	(void)sd_event_source_set_enabled(fleet->notify, SD_EVENT_ONESHOT);
}

void fleet_changed(struct fleet *fleet)
{
	fleet->revision++;
	if (fleet->notify)
		fleet_notify(fleet);
}

void fleet_on_change(struct fleet *fleet, void (*fn)(void *userdata),
		     void *userdata)
{
	fleet->changed = fn;
	fleet->changed_data = userdata;
}

static int on_notify(sd_event_source *source, uint64_t usec_, void *userdata)
{
	struct fleet *fleet = userdata;

	(void)source, (void)usec_;
	if (fleet->changed)
		fleet->changed(fleet->changed_data);
	return 0;
}

/* ---- the store behind ---- */

void fleet_touch(struct fleet *fleet, struct fleet_node *n)
{
	int enabled = SD_EVENT_OFF;

	n->dirty = true;
	(void)sd_event_source_get_enabled(fleet->flush, &enabled);
	if (enabled != SD_EVENT_OFF)
		return;
	(void)sd_event_source_set_time_relative(fleet->flush, FLUSH_EVERY);
	(void)sd_event_source_set_enabled(fleet->flush, SD_EVENT_ONESHOT);
}

/* One transaction for all: thousands of reports cost one fsync. */
static int write_dirty(struct fleet *fleet, struct fault *f)
{
	int r, first = 0;

	r = store_begin(fleet->store, f);
	if (r < 0)
		return r;
	for (size_t i = 0; i < fleet->n_nodes; i++) {
		struct fleet_node *n = fleet->nodes[i];

		if (!n->dirty)
			continue;
		r = store_node_update(fleet->store, &n->row, f);
		if (r == 0)
			n->dirty = false;
		else if (first == 0)
			first = r;
	}
	r = store_end(fleet->store, true, f);
	return first ? first : r;
}

static int on_flush(sd_event_source *source, uint64_t usec_, void *userdata)
{
	struct fleet *fleet = userdata;
	struct fault f = FAULT_INIT;
	char text[FAULT_TEXT_MAX];

	(void)source, (void)usec_;
	if (write_dirty(fleet, &f) < 0)
		log_error("%s", fault_str(&f, text, sizeof(text)));
	return 0;
}

static int on_sweep(sd_event_source *source, uint64_t usec_, void *userdata)
{
	struct fleet *fleet = userdata;
	usec now = clock_boottime();

	(void)usec_;
	for (size_t i = 0; i < fleet->n_nodes; i++) {
		struct fleet_node *n = fleet->nodes[i];
		usec last = n->seen ? n->seen : fleet->began;
		bool stale = n->row.state == STORE_NODE_ACTIVE &&
			     now - last > fleet->options.stale_after;

		if (n->held_until && now > n->held_until) {
			n->held_until = 0;
			n->held[0] = '\0';
			fleet_changed(fleet);
			dispatch_run(fleet, n);
		}
		if (stale == n->stale)
			continue;
		n->stale = stale;
		if (stale && n->seen)
			journal_note(fleet->journal, "fleet", n->row.name,
				     "not heard of for %llu s",
				     (unsigned long long)((now - n->seen) /
							  USEC_PER_SEC));
		fleet_changed(fleet);
	}
	(void)sd_event_source_set_time_relative(source, SWEEP_EVERY);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int fleet_horizon(struct fleet *fleet, struct fault *f)
{
	uint64_t epoch, first;
	int r;

	if (fleet->next < fleet->reserved_end)
		return 0;
	r = store_sequence_reserve(fleet->store, SEQUENCE_BLOCK, &epoch,
				   &first, f);
	if (r < 0)
		return r;
	fleet->epoch = epoch;
	fleet->next = first;
	fleet->reserved_end = first + SEQUENCE_BLOCK;
	return 0;
}

int fleet_sequence(struct fleet *fleet, uint64_t *ret_epoch,
		   uint64_t *ret_sequence, struct fault *f)
{
	int r = fleet_horizon(fleet, f);

	if (r < 0)
		return r;
	*ret_epoch = fleet->epoch;
	*ret_sequence = fleet->next++;
	return 0;
}

static int add_sources(struct fleet *fleet)
{
	sd_event *e = fleet->event;
	int r;

	r = sd_event_add_time_relative(e, &fleet->flush, CLOCK_MONOTONIC,
				       FLUSH_EVERY, ACCURACY, on_flush, fleet);
	if (r < 0)
		return r;
	(void)sd_event_source_set_enabled(fleet->flush, SD_EVENT_OFF);
	r = sd_event_add_time_relative(e, &fleet->sweep, CLOCK_MONOTONIC,
				       SWEEP_EVERY, ACCURACY, on_sweep, fleet);
	if (r < 0)
		return r;
	r = sd_event_add_time_relative(e, &fleet->notify, CLOCK_MONOTONIC,
				       NOTIFY_AFTER, USEC_PER_MSEC, on_notify,
				       fleet);
	if (r < 0)
		return r;
	return sd_event_source_set_enabled(fleet->notify, SD_EVENT_OFF);
}

static void cleanup_fleet(struct fleet **fleet)
{
	(void)fleet_free(*fleet);
}

int fleet_new(sd_event *event, struct store *store, struct signer *signer,
	      struct journal *journal, const struct fleet_options *options,
	      struct fleet **ret_fleet, struct fault *f)
{
	struct fleet *fleet CLEANUP(cleanup_fleet) = calloc(1, sizeof(*fleet));
	int r;

	if (!fleet)
		return fault_set(f, -ENOMEM, "fleet", "out of memory");
	fleet->event = sd_event_ref(event);
	fleet->store = store;
	fleet->signer = signer;
	fleet->journal = journal;
	fleet->options = *options;
	fleet->began = clock_boottime();
	if (!fleet->options.stale_after)
		fleet->options.stale_after = FLEET_STALE_AFTER;
	if (!fleet->options.probe)
		fleet->options.probe = FLEET_PROBE;
	r = store_nodes(store, on_row, fleet, f);
	if (r < 0)
		return r;
	r = add_sources(fleet);
	if (r < 0)
		return fault_errno(f, r, "fleet", "no event source");
	*ret_fleet = take_ptr(fleet);
	return 0;
}

struct fleet *fleet_free(struct fleet *fleet)
{
	if (!fleet)
		return NULL;
	fleet->changed = NULL;
	session_close_all(fleet);
	if (fleet->flush)
		(void)write_dirty(fleet, NULL);
	for (size_t i = 0; i < fleet->n_nodes; i++)
		(void)node_free(fleet->nodes[i]);
	free(fleet->nodes);
	(void)sd_event_source_disable_unref(fleet->flush);
	(void)sd_event_source_disable_unref(fleet->sweep);
	(void)sd_event_source_disable_unref(fleet->notify);
	(void)sd_event_unref(fleet->event);
	free(fleet);
	return NULL;
}
