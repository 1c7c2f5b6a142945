/* What each order does, on a scratch node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "order_fixture.h"

#include "agent/k3s_wipe.h"

static struct order *desired_for(const char *name)
{
	struct order *o = order_new(ORDER_SET_DESIRED);

	o->desired = desired_new();
	free(o->desired->node);
	o->desired->node = strdup(name);
	o->desired->generation = 12;
	o->desired->cluster.port = 6443;
	o->desired->cluster.servers = calloc(1, sizeof(struct ip_addr));
	o->desired->cluster.n_servers = 1;
	(void)ip_addr_parse("192.0.2.11", &o->desired->cluster.servers[0]);
	return o;
}

static void desired_state_survives(void **state)
{
	struct desired *d = NULL;
	struct fault f = FAULT_INIT;

	(void)state;
	assert_int_equal(send_order(desired_for("n2")), RESULT_REFUSED);
	assert_null(engine_desired(t.engine));
	assert_int_equal(orders_stored_desired(&t.state, &d, &f), 1);
	assert_int_equal(send_order(desired_for("n1")), RESULT_DONE);
	assert_int_equal(engine_desired(t.engine)->generation, 12);
	stop();
	(void)make_node(false);
	assert_int_equal(orders_restore_desired(&t.state, t.engine, &f), 0);
	assert_int_equal(engine_desired(t.engine)->generation, 12);
}

static void facts_are_read(void **state)
{
	(void)state;
	put("/etc/machine-id", "0123456789abcdef0123456789abcdef\n");
	put("/var/lib/rancher/k3s/server/token", "K10secret::server:x");
	assert_int_equal(send_order(order_new(ORDER_READ_FACTS)), RESULT_DONE);
	assert_non_null(t.result->result.facts);
	assert_string_equal(t.result->result.facts->identity.machine_id,
			    "0123456789abcdef0123456789abcdef");
	/* K3-01: what an earlier life left is named. */
	assert_true(strlist_has(&t.result->result.facts->leftovers,
				"/var/lib/rancher/k3s/server/token"));
	assert_false(t.result->result.facts->has_founding);
}

static void lease_has_one_holder(void **state)
{
	struct order *o = order_new(ORDER_LEASE);

	(void)state;
	o->lease = (struct order_lease){ LEASE_ACQUIRE, "alice", 3,
					 60 * USEC_PER_SEC };
	assert_int_equal(send_order(o), RESULT_DONE);
	o = order_new(ORDER_LEASE);
	o->lease = (struct order_lease){ LEASE_ACQUIRE, "bob", 4,
					 60 * USEC_PER_SEC };
	assert_int_equal(send_order(o), RESULT_REFUSED);
	assert_non_null(strstr(t.result->result.text, "held by alice"));
	o = order_new(ORDER_LEASE);
	o->lease = (struct order_lease){ LEASE_RELEASE, "alice", 3, 0 };
	assert_int_equal(send_order(o), RESULT_DONE);
	/* The term is remembered: an old holder cannot come back (fencing). */
	o = order_new(ORDER_LEASE);
	o->lease = (struct order_lease){ LEASE_ACQUIRE, "alice", 3,
					 60 * USEC_PER_SEC };
	assert_int_equal(send_order(o), RESULT_REFUSED);
	o = order_new(ORDER_LEASE);
	o->lease = (struct order_lease){ LEASE_ACQUIRE, "bob", 4,
					 60 * USEC_PER_SEC };
	assert_int_equal(send_order(o), RESULT_DONE);
}

static struct order *founding(const char *uid)
{
	struct order *o = order_new(ORDER_RECORD_FOUNDING);

	strcpy(o->founding.founder, "n1");
	strcpy(o->founding.cluster_uid, uid);
	o->founding.intent = 77;
	return o;
}

static void co02_founding_is_not_overwritten(void **state)
{
	(void)state;
	assert_int_equal(send_order(founding("")), RESULT_DONE);
	assert_int_equal(send_order(founding("aaaa")), RESULT_DONE);
	assert_int_equal(send_order(founding("bbbb")), RESULT_REFUSED);
	assert_int_equal(send_order(founding("")), RESULT_REFUSED);
	assert_string_equal(t.state.founding.cluster_uid, "aaaa");
	assert_int_equal(send_order(founding("aaaa")), RESULT_DONE);
}

static struct order *stream(const char *server)
{
	struct order *o = order_new(ORDER_OPEN_STREAM);

	memset(o->stream.stream_id, 0x5a, 16);
	o->stream.target = server ? STREAM_API_SERVER : STREAM_API_LOCAL;
	if (server)
		(void)ip_addr_parse(server, &o->stream.server);
	return o;
}

static void streams_only_go_where_desired(void **state)
{
	const struct forge honest = { 0 };
	struct order *o = stream(NULL);
	uint8_t id[16];

	(void)state;
	assert_int_equal(send_order(stream(NULL)), RESULT_REFUSED);
	assert_int_equal(send_order(desired_for("n1")), RESULT_DONE);
	assert_int_equal(send_order(stream("192.0.2.99")), RESULT_REFUSED);
	assert_int_equal(t.frame_type, 0);
	t.sequence++;
	assert_int_equal(send_as(&honest, o), 0);
	assert_int_equal(t.frame_type, FRAME_STREAM_DIAL);
	assert_memory_equal(t.frame + 16, "\x19\x2b" "127.0.0.1", 11);
	/* The answer waits for the link's, and repeats do not dial again. */
	t.frame_type = 0;
	assert_int_equal(send_as(&honest, o), 0);
	assert_int_equal(t.frame_type, 0);
	assert_int_equal(t.emitted, 3);
	memset(id, 0x5a, sizeof(id));
	orders_stream_result(t.orders, id, -ECONNREFUSED, "refused");
	assert_int_equal(t.emitted, 4);
	assert_int_equal(t.result->result.code, RESULT_FAILED);
	order_free(o);
}

static struct order *configure(bool found)
{
	struct order *o = order_new(ORDER_K3S_CONFIGURE);
	uint8_t public_key[KEY_PUBLIC_SIZE];
	struct fault f = FAULT_INIT;

	strcpy(o->configure.node_name, "n1");
	(void)ip_addr_parse("192.0.2.11", &o->configure.node_ip);
	o->configure.cluster_init = found;
	if (!found)
		(void)ip_addr_parse("192.0.2.12", &o->configure.join_address);
	assert_int_equal(strlist_add(&o->configure.tls_sans, "192.0.2.10"), 0);
	key_public(t.seal, public_key);
	assert_int_equal(seal_to(public_key,
				 "k3s token for "
				 "0d000000000000000000000000000000",
				 "sesame0123", 10, &o->configure.token, &f),
			 0);
	return o;
}

static void a44_same_configuration_changes_nothing(void **state)
{
	_cleanup_free_ char *token = NULL;
	struct fault f = FAULT_INIT;
	struct stat st;
	size_t n;

	(void)state;
	assert_int_equal(send_order(configure(true)), RESULT_DONE);
	assert_string_equal(t.result->result.text, "changed");
	assert_int_equal(file_read(scratch_path("/etc/rancher/k3s/"
						"garboard-token"),
				   100, &token, &n, &f), 0);
	assert_string_equal(token, "sesame0123");
	assert_int_equal(stat(scratch_path("/etc/rancher/k3s/garboard-token"),
			      &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(send_order(configure(true)), RESULT_DONE);
	assert_string_equal(t.result->result.text, "unchanged");
	assert_int_equal(send_order(configure(false)), RESULT_DONE);
	assert_string_equal(t.result->result.text, "changed");
}

static void foreign_files_are_refused(void **state)
{
	(void)state;
	put("/etc/rancher/k3s/config.yaml.d/50-mine.yaml",
	    "tls-san:\n- other\n");
	assert_int_equal(send_order(configure(true)), RESULT_REFUSED);
	assert_non_null(strstr(t.result->result.text, "50-mine.yaml"));
	assert_non_null(strstr(t.result->result.text, "tls-san"));
	assert_false(exists("/etc/rancher/k3s/config.yaml"));
	/* An appending key, and one that is not ours, may stay. */
	put("/etc/rancher/k3s/config.yaml.d/50-mine.yaml",
	    "tls-san+:\n- other\nkubelet-arg: [a=b]\n");
	assert_int_equal(send_order(configure(true)), RESULT_DONE);
	put("/etc/systemd/system/k3s.service", "[Service]\nExecStart=/x\n");
	/* Refused means that nothing was done, not half of it. */
	assert_int_equal(send_order(configure(false)), RESULT_REFUSED);
	assert_null(strstr(get("/etc/rancher/k3s/config.yaml"), "server:"));
	put("/etc/rancher/k3s/config.yaml", "node-name: mine\n");
	assert_int_equal(send_order(configure(true)), RESULT_REFUSED);
}

static struct order *blob(const char *all, size_t offset, size_t n)
{
	struct order *o = order_new(ORDER_BLOB);

	o->blob.kind = BLOB_K3S;
	o->blob.size = strlen(all);
	o->blob.offset = offset;
	(void)key_sha256(all, strlen(all), o->blob.sha256);
	o->blob.data.v = malloc(n);
	memcpy(o->blob.data.v, all + offset, n);
	o->blob.data.n = n;
	return o;
}

static struct order *install(const char *content)
{
	struct order *o = order_new(ORDER_K3S_INSTALL);

	strcpy(o->install.version, "v1.36.4+k3s1");
	(void)key_sha256(content, strlen(content), o->install.sha256);
	return o;
}

static void binary_is_verified_before_it_is_placed(void **state)
{
	static const char program[] = "#!/bin/sh\nexit 0\n";
	struct order *o;
	struct stat st;

	(void)state;
	assert_int_equal(send_order(install(program)), RESULT_REFUSED);
	/* Out of order, then in order. */
	assert_int_equal(send_order(blob(program, 4, 4)), RESULT_REFUSED);
	assert_int_equal(send_order(blob(program, 0, 8)), RESULT_DONE);
	assert_int_equal(send_order(install(program)), RESULT_REFUSED);
	assert_int_equal(send_order(blob(program, 8, sizeof(program) - 9)),
			 RESULT_DONE);
	scratch_dir("/usr/local/bin");
	assert_int_equal(send_order(install(program)), RESULT_DONE);
	assert_int_equal(stat(scratch_path("/usr/local/bin/k3s"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	/* From the image: what is there must be what the spec says. */
	o = install("something else");
	o->install.from_image = true;
	assert_int_equal(send_order(o), RESULT_FAILED);
	assert_non_null(strstr(t.result->result.text, "has SHA-256"));
	assert_string_equal(t.state.install.version, "v1.36.4+k3s1");
}

static void corrupt_blob_is_thrown_away(void **state)
{
	struct order *o = blob("abcdef", 0, 6);

	(void)state;
	o->blob.sha256[0] ^= 1;
	assert_int_equal(send_order(o), RESULT_FAILED);
	assert_int_equal(send_order(install("abcdef")), RESULT_REFUSED);
}

static struct order *start(enum start_mode mode)
{
	struct order *o = order_new(ORDER_K3S_START);

	o->start.mode = mode;
	if (mode == START_FOUND) {
		o->start.has_intent = true;
		strcpy(o->start.intent.founder, "n1");
		o->start.intent.intent = 5;
	}
	return o;
}

static void co02_no_second_cluster(void **state)
{
	static const char program[] = "#!/bin/sh\nexit 0\n";

	(void)state;
	assert_int_equal(send_order(start(START_FOUND)), RESULT_REFUSED);
	scratch_dir("/usr/local/bin");
	assert_int_equal(send_order(blob(program, 0, sizeof(program) - 1)),
			 RESULT_DONE);
	assert_int_equal(send_order(install(program)), RESULT_DONE);
	/* A joiner's configuration founds nothing, and the other way round. */
	assert_int_equal(send_order(configure(false)), RESULT_DONE);
	assert_int_equal(send_order(start(START_FOUND)), RESULT_REFUSED);
	assert_int_equal(send_order(configure(true)), RESULT_DONE);
	assert_int_equal(send_order(start(START_JOIN)), RESULT_REFUSED);
	/* Data of an earlier life. */
	scratch_dir("/var/lib/rancher/k3s/server/db/etcd/member/wal");
	assert_int_equal(send_order(start(START_FOUND)), RESULT_REFUSED);
	assert_non_null(strstr(t.result->result.text, "second cluster"));
	assert_false(t.state.has_founding);
	/* Without it all is fine but D-Bus, which this node lacks; by then
	 * the intent is on disk. */
	assert_int_equal(rmdir(scratch_path("/var/lib/rancher/k3s/server/db/"
					    "etcd/member/wal")), 0);
	assert_int_equal(send_order(start(START_FOUND)), RESULT_FAILED);
	assert_non_null(strstr(t.result->result.text, "D-Bus"));
	assert_true(t.state.has_founding);
	assert_int_equal(t.state.founding.intent, 5);
	/* A binary that was changed since is not started. */
	put("/usr/local/bin/k3s", "#!/bin/sh\nevil\n");
	assert_int_equal(send_order(start(START_FOUND)), RESULT_FAILED);
	assert_non_null(strstr(t.result->result.text, "has SHA-256"));
}

static void credential_leaves_sealed(void **state)
{
	struct order *o = order_new(ORDER_READ_CREDENTIAL);
	struct fault f = FAULT_INIT;
	uint8_t *plain = NULL;
	size_t n;

	(void)state;
	o->credential.kind = CREDENTIAL_ADMIN;
	assert_int_equal(send_order(o), RESULT_FAILED);
	put("/var/lib/rancher/k3s/server/tls/server-ca.crt", "CA\nPEM\n");
	put("/var/lib/rancher/k3s/server/tls/client-admin.crt", "CERT\n");
	put("/var/lib/rancher/k3s/server/tls/client-admin.key", "KEY\n");
	o = order_new(ORDER_READ_CREDENTIAL);
	o->credential.kind = CREDENTIAL_ADMIN;
	key_public(t.seal, o->credential.seal_key);
	assert_int_equal(send_order(o), RESULT_DONE);
	assert_int_equal(seal_open(t.seal,
				   "credential from "
				   "0d000000000000000000000000000000",
				   &t.result->result.credential, &plain, &n,
				   &f), 0);
	assert_string_equal((char *)plain,
			    "{\"ca\":\"CA\\nPEM\\n\",\"cert\":\"CERT\\n\","
			    "\"key\":\"KEY\\n\"}");
	free(plain);
}

static void what_is_not_there_is_refused(void **state)
{
	struct order *o = order_new(ORDER_PROBE);

	(void)state;
	o->probe = PROBE_DB_INFO;
	assert_int_equal(send_order(o), RESULT_REFUSED);
	o = order_new(ORDER_DISARM);
	strcpy(o->klass.class_name, "vpn");
	strcpy(o->klass.reason, "test");
	assert_int_equal(send_order(o), RESULT_REFUSED);
	o = order_new(ORDER_REBOOT);
	strcpy(o->reason, "test");
	assert_int_equal(send_order(o), RESULT_FAILED);
}

static struct order *reset(const char *name)
{
	struct order *o = order_new(ORDER_K3S_RESET);

	strcpy(o->confirm_node, name);
	return o;
}

static void wipe_takes_the_membership_only(void **state)
{
	static const char *const gone[] = {
		"/var/lib/rancher/k3s/server/db/etcd/member/wal/0.wal",
		"/var/lib/rancher/k3s/server/token",
		"/var/lib/rancher/k3s/agent/client.key",
		"/etc/rancher/k3s/config.yaml",
		"/etc/rancher/k3s/garboard-token",
	};
	static const char *const stays[] = {
		"/var/lib/rancher/k3s/agent/images/a.tar",
		"/var/lib/rancher/k3s/agent/containerd/x",
		"/var/lib/rancher/k3s/storage/volume",
		"/etc/rancher/k3s/registries.yaml",
		"/etc/rancher/node/password",
		"/etc/precious",
	};
	char path[512], target[512];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		put(gone[i], "x");
	for (i = 0; i < sizeof(stays) / sizeof(stays[0]); i++)
		put(stays[i], "x");
	/* What a link names is not what is wiped. */
	(void)snprintf(path, sizeof(path), "%s/var/lib/rancher/k3s/server/up",
		       t.host.root);
	(void)snprintf(target, sizeof(target), "%s/etc", t.host.root);
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(send_order(founding("aaaa")), RESULT_DONE);
	assert_int_equal(send_order(reset("n2")), RESULT_REFUSED);
	(void)snprintf(path, sizeof(path), "%s%s", t.host.root, gone[0]);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(send_order(reset("n1")), RESULT_DONE);
	for (i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", t.host.root,
			       gone[i]);
		assert_int_equal(access(path, F_OK), -1);
	}
	for (i = 0; i < sizeof(stays) / sizeof(stays[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", t.host.root,
			       stays[i]);
		assert_int_equal(access(path, F_OK), 0);
	}
	/* Idempotent, and the record stays (CO-02). */
	assert_int_equal(send_order(reset("n1")), RESULT_DONE);
	assert_string_equal(t.state.founding.cluster_uid, "aaaa");
}

static void wipe_leaves_a_foreign_unit(void **state)
{
	(void)state;
	put("/etc/systemd/system/k3s.service", "[Service]\n");
	put("/var/lib/rancher/k3s/server/token", "x");
	assert_int_equal(send_order(reset("n1")), RESULT_REFUSED);
}

static void wipe_knows_mounts_of_pods(void **state)
{
	(void)state;
	assert_true(k3s_wipe_is_pods("36 35 98:0 / /run/k3s/containerd/x/rootfs rw"));
	assert_true(k3s_wipe_is_pods("36 35 98:0 / /var/lib/kubelet/pods/1 rw"));
	assert_false(k3s_wipe_is_pods("36 35 98:0 /run/k3s/ /var/lib/rancher rw"));
	assert_false(k3s_wipe_is_pods("36 35"));
	assert_false(k3s_wipe_is_pods(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(desired_state_survives),
		CASE(facts_are_read),
		CASE(lease_has_one_holder),
		CASE(co02_founding_is_not_overwritten),
		CASE(streams_only_go_where_desired),
		CASE(a44_same_configuration_changes_nothing),
		CASE(foreign_files_are_refused),
		CASE(binary_is_verified_before_it_is_placed),
		CASE(corrupt_blob_is_thrown_away),
		CASE(co02_no_second_cluster),
		CASE(credential_leaves_sealed),
		CASE(what_is_not_there_is_refused),
		CASE(wipe_takes_the_membership_only),
		CASE(wipe_leaves_a_foreign_unit),
		CASE(wipe_knows_mounts_of_pods),
	};

	return cmocka_run_group_tests_name("order handlers", tests, make_keys,
					   free_keys);
}
