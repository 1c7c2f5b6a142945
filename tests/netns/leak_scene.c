#include "leak_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/engine.h"
#include "common/log.h"
#include "world.h"

#define DEADLINE_MS 20000

static struct traffic_scene at = { -1, -1, -1, -1, -1 };
static int ns_home = -1;
static char dir[64];
static pid_t server_pid, client_pid, agent_pid;
static const char *agent_dir, *disk;
static bool agent_plain;

static int open_ns(void)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static int new_ns(void)
{
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	sh("sysctl -qw net.ipv6.conf.default.accept_dad=0 "
	   "net.ipv6.conf.all.accept_dad=0 net.ipv4.conf.all.rp_filter=0 "
	   "net.ipv4.conf.default.rp_filter=0; ip link set lo up");
	return open_ns();
}

static void enter(int ns)
{
	assert_int_equal(setns(ns, CLONE_NEWNET), 0);
}

const struct traffic_scene *scene_traffic(void)
{
	return &at;
}

const char *scene_dir(void)
{
	return dir;
}

/* ---- links ---- */

#define NEIGHBOUR "lladdr 02:00:00:00:00:fe nud permanent"

void scene_uplink(void)
{
	sh("ip link add up0 type veth peer name far0 netns /proc/%d/fd/%d;"
	   "ip link set up0 master br0 up",
	   (int)getpid(), at.far);
	enter(at.far);
	sh("ip link set far0 address 02:00:00:00:00:fe up;"
	   "ip addr add 192.0.2.254/24 dev far0;"
	   "ip -6 addr add 2001:db8:1::fe/64 dev far0 nodad");
	enter(at.node);
}

void scene_rules(void)
{
	(void)sh_status("for f in -4 -6; do ip $f rule | grep -q 'lookup main' "
			"|| ip $f rule add pref 32766 lookup main; done");
}

static void make_bridge(void)
{
	sh("ip link add br0 type bridge;"
	   "ip link set br0 address 02:00:00:00:00:bb up;"
	   "ip addr add 192.0.2.1/24 dev br0;"
	   "ip -6 addr add 2001:db8:1::1/64 dev br0 nodad;"
	   "ip neigh replace 192.0.2.254 " NEIGHBOUR " dev br0;"
	   "ip -6 neigh replace 2001:db8:1::fe " NEIGHBOUR " dev br0;"
	   "ip route add default via 192.0.2.254;"
	   "ip -6 route add default via 2001:db8:1::fe;"
	   "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
}

/* A container with a point-to-point link, as a CNI makes it. */
static void make_pod(int ns, const char *name, const char *v4,
		     const char *v6)
{
	sh("ip link add %s type veth peer name eth0 netns /proc/%d/fd/%d;"
	   "ip link set %s address 02:00:00:00:00:01 up;"
	   "ip route add %s dev %s; ip -6 route add %s dev %s",
	   name, (int)getpid(), ns, name, v4, name, v6, name);
	enter(ns);
	sh("ip link set eth0 up; ip addr add %s/32 dev eth0;"
	   "ip -6 addr add %s/128 dev eth0 nodad;"
	   "ip route add 169.254.1.1 dev eth0;"
	   "ip route add default via 169.254.1.1 dev eth0;"
	   "ip neigh replace 169.254.1.1 lladdr 02:00:00:00:00:01 dev eth0;"
	   "ip -6 neigh replace fe80::1 lladdr 02:00:00:00:00:01 dev eth0;"
	   "ip -6 route add default via fe80::1 dev eth0", v4, v6);
	enter(at.node);
}

static void make_bridged(void)
{
	sh("ip link add brp0 type veth peer name eth0 netns /proc/%d/fd/%d;"
	   "ip link set brp0 master br0 up", (int)getpid(), at.bridged);
	enter(at.bridged);
	sh("ip link set eth0 up; ip addr add 10.44.0.7/32 dev eth0;"
	   "ip -6 addr add fd44::7/128 dev eth0 nodad;"
	   "ip neigh replace 192.0.2.254 " NEIGHBOUR " dev eth0;"
	   "ip route add default via 192.0.2.254 dev eth0 onlink;"
	   "ip -6 neigh replace fe80::fe " NEIGHBOUR " dev eth0;"
	   "ip -6 route add default via fe80::fe dev eth0");
	enter(at.node);
}

/* ---- OpenVPN ---- */

static void make_keys(void)
{
	sh("cd %s && openssl ecparam -name prime256v1 -genkey -noout "
	   "-out ca.key && openssl req -new -x509 -key ca.key -out ca.crt "
	   "-days 2 -subj /CN=ca 2>/dev/null && "
	   "for n in server client; do "
	   "openssl ecparam -name prime256v1 -genkey -noout -out $n.key && "
	   "openssl req -new -key $n.key -subj /CN=$n 2>/dev/null | "
	   "openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial "
	   "-days 2 -out $n.crt 2>/dev/null || exit 1; done; "
	   "mkdir ccd; printf 'iroute 10.44.0.0 255.255.240.0\n"
	   "iroute 10.45.0.5 255.255.255.255\niroute-ipv6 fd44::/64\n"
	   "iroute-ipv6 fd45::/64\n' > ccd/client", dir);
}

static void make_scripts(void)
{
	sh("cat > %s/updown <<'E'\n"
	   "#!/bin/sh\n"
	   "c='10.44.0.0/20 10.45.0.5'; d='fd44::/64 fd45::5'\n"
	   "case $script_type in\n"
	   "up)\n"
	   "  for s in $c; do ip rule add from $s lookup 99; done\n"
	   "  for s in $d; do ip -6 rule add from $s lookup 99; done\n"
	   "  ip rule add fwmark 0x2000/0x3f00 lookup 99\n"
	   "  ip -6 rule add fwmark 0x2000/0x3f00 lookup 99\n"
	   "  ip route add default dev $dev table 99\n"
	   "  ip -6 route add default dev $dev table 99\n"
	   "  nft -f - <<N\n"
	   "table inet updown {\n"
	   " chain o { type filter hook postrouting priority 0;\n"
	   "  oifname { \"lo\", \"$dev\" } accept\n"
	   "  ip saddr { 10.44.0.0/20, 10.45.0.5 } drop\n"
	   "  ip6 saddr { fd44::/64, fd45::5 } drop\n"
	   "  meta mark and 0x3f00 == 0x2000 drop\n"
	   " }\n"
	   "}\n"
	   "N\n"
	   "  ;;\n"
	   "down)\n"
	   "  while ip rule del lookup 99; do :; done\n"
	   "  while ip -6 rule del lookup 99; do :; done\n"
	   "  nft delete table inet updown\n"
	   "  ;;\n"
	   "esac 2>/dev/null\n"
	   "exit 0\n"
	   "E\n"
	   "chmod +x %s/updown", dir, dir);
}

static pid_t run_in(int ns, char *const argv[])
{
	pid_t pid;
	int log;

	(void)fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setns(ns, CLONE_NEWNET) < 0 || chdir(dir) < 0)
		_exit(126);
	log = open("openvpn.log", O_WRONLY | O_CREAT | O_APPEND, 0600);
	(void)dup2(log, 1);
	(void)dup2(log, 2);
	(void)execvp(argv[0], argv);
	_exit(127);
}

static void start_server(void)
{
	static const char *const argv[] = {
		"openvpn", "--dev", LEAK_TUNNEL, "--mode", "server",
		"--tls-server", "--topology", "subnet", "--server",
		"10.64.0.0", "255.255.240.0", "--server-ipv6", "fd64::/64",
		"--ca", "ca.crt", "--cert", "server.crt", "--key",
		"server.key", "--dh", "none", "--client-config-dir", "ccd",
		"--duplicate-cn", "--local", "198.51.100.7", "--push",
		"redirect-gateway def1", "--keepalive", "1", "5", NULL
	};

	enter(at.far);
	sh("ip addr add 198.51.100.7/32 dev lo");
	enter(at.node);
	server_pid = run_in(at.far, (char *const *)argv);
}

void tunnel_start(enum scripts scripts)
{
	static const char *const argv[] = {
		"openvpn", "--client", "--dev", LEAK_TUNNEL, "--remote",
		"198.51.100.7", "--nobind", "--ca", "ca.crt", "--cert",
		"client.crt", "--key", "client.key", "--route-noexec",
		"--connect-retry", "1", "1", "--server-poll-timeout", "3",
		"--script-security", "2", "--up", "./updown", "--down",
		"./updown", NULL
	};
	const char *plain[sizeof(argv) / sizeof(argv[0])];
	size_t i;

	for (i = 0; argv[i] && strcmp(argv[i], "--up") != 0; i++)
		plain[i] = argv[i];
	plain[i] = NULL;
	client_pid = run_in(at.node, (char *const *)(scripts == SCRIPTS_NONE ?
						     plain : argv));
}

bool tunnel_is_up(void)
{
	struct ifaddrs *list = NULL, *a;
	bool up = false;

	if (getifaddrs(&list) < 0)
		return false;
	for (a = list; a; a = a->ifa_next)
		if (strcmp(a->ifa_name, LEAK_TUNNEL) == 0 && a->ifa_addr &&
		    a->ifa_addr->sa_family == AF_INET &&
		    (a->ifa_flags & IFF_UP))
			up = true;
	freeifaddrs(list);
	return up;
}

void tunnel_wait(void)
{
	int i;

	for (i = 0; !tunnel_is_up(); i++) {
		if (i > DEADLINE_MS) {
			sh("cat %s/openvpn.log >&2", dir);
			fail_msg("the tunnel does not come up");
		}
		(void)poll(NULL, 0, 1);
	}
}

void tunnel_signal(int signal)
{
	if (client_pid)
		assert_int_equal(kill(client_pid, signal), 0);
}

void tunnel_end(int signal)
{
	if (!client_pid)
		return;
	(void)kill(client_pid, signal);
	assert_int_equal(waitpid(client_pid, NULL, 0), client_pid);
	client_pid = 0;
}

/* ---- the whole ---- */

void scene_make(void)
{
	ns_home = open_ns();
	(void)snprintf(dir, sizeof(dir), "/tmp/garboard-leak-XXXXXX");
	assert_non_null(mkdtemp(dir));
	at.far = new_ns();
	at.pod = new_ns();
	at.bridged = new_ns();
	at.web = new_ns();
	at.node = new_ns();
	sh("ip link add dum0 type veth peer name dum1; ip link set dum0 up;"
	   "ip addr add 10.45.0.5/32 dev dum0;"
	   "ip -6 addr add fd45::5/128 dev dum0 nodad");
	make_bridge();
	scene_uplink();
	make_pod(at.pod, "pod0", "10.44.0.6", "fd44::6");
	make_pod(at.web, "web0", "10.42.0.9", "fd42::9");
	make_bridged();
	make_keys();
	make_scripts();
	start_server();
}

void scene_done(void)
{
	agent_end(SIGTERM);
	tunnel_end(SIGKILL);
	(void)kill(server_pid, SIGKILL);
	(void)waitpid(server_pid, NULL, 0);
	server_pid = 0;
	enter(ns_home);
	(void)close(at.node);
	(void)close(at.far);
	(void)close(at.pod);
	(void)close(at.bridged);
	(void)close(at.web);
	(void)close(ns_home);
	sh("rm -rf %s", dir);
}

static void add(struct prefix_list *list, const char *text)
{
	struct ip_prefix p = sample_prefix(text);

	assert_int_equal(prefix_list_add(list, &p), 0);
}

struct desired *scene_desired(void)
{
	struct desired *d = desired_new();
	struct desired_egress *e;
	struct desired_class *c;

	assert_non_null(d);
	e = &d->egress;
	e->tunnels = calloc(1, sizeof(*e->tunnels));
	e->n_tunnels = 1;
	e->tunnels[0] = (struct desired_tunnel){
		.name = strdup(LEAK_TUNNEL), .kind = TUNNEL_OPENVPN,
		.table = 51820, .priority = 18200 };
	e->tunnels[0].endpoints = calloc(1, sizeof(struct ip_endpoint));
	e->tunnels[0].n_endpoints = 1;
	assert_int_equal(ip_endpoint_parse("198.51.100.7:1194/udp",
					   e->tunnels[0].endpoints), 0);
	e->classes = calloc(1, sizeof(*e->classes));
	e->n_classes = 1;
	c = &e->classes[0];
	*c = (struct desired_class){ .name = strdup("vpn"), .mark = 0x2000,
				     .mask = 0x3f00, .gateway = true };
	add(&c->pods, "10.44.0.0/20");
	add(&c->pods, "fd44::/64");
	add(&c->sources, "10.45.0.5/32");
	add(&c->sources, "fd45::5/128");
	add(&e->local, "192.0.2.0/24");
	add(&e->local, "10.42.0.0/16");
	add(&e->local, "2001:db8:1::/64");
	assert_int_equal(strlist_add(&e->uplinks, "br0"), 0);
	assert_int_equal(strlist_add(&e->uplinks, "up0"), 0);
	return d;
}

/* ---- the disk ---- */

void scene_disk(const char *state_dir)
{
	disk = state_dir;
	assert_int_equal(mount("leak", disk, "tmpfs", 0, "size=256k"), 0);
}

void scene_disk_done(void)
{
	assert_int_equal(umount(disk), 0);
	disk = NULL;
}

void scene_fill_disk(void)
{
	(void)sh_status("dd if=/dev/zero of=%s/full bs=512 2>/dev/null", disk);
	assert_int_not_equal(sh_status("echo 1 2>/dev/null > %s/one", disk),
			     0);
}

void scene_empty_disk(void)
{
	sh("rm -f %s/full %s/one", disk, disk);
}

/* ---- the agent ---- */

static int on_term(sd_event_source *s, const struct signalfd_siginfo *si,
		   void *userdata)
{
	(void)si;
	(void)userdata;
	return sd_event_exit(sd_event_source_get_event(s), 0);
}

struct life {
	struct engine *engine;
	int ready;		/* written to once, then -1 */
};

static void on_change(void *userdata)
{
	struct life *life = userdata;

	if (life->ready < 0 || !engine_settled(life->engine))
		return;
	(void)!write(life->ready, "r", 1);
	(void)close(life->ready);
	life->ready = -1;
}

static int agent(struct desired *want, const char *state_dir, bool plain,
		 int ready)
{
	struct resource_host host = { .root = state_dir, .state_dir = state_dir,
				      .no_table_owner = plain };
	struct engine_params p = engine_params_default();
	struct life life = { .ready = ready };
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	if (sd_event_new(&host.event) < 0 ||
	    sd_event_add_signal(host.event, NULL, SIGTERM, on_term, NULL) < 0)
		return 1;
	/* A harness breaks more in a second than the world in a year. */
	p.repair.burst = 100000;
	if (engine_new(&host, resource_registry, &p, &life.engine) < 0)
		return 1;
	engine_only(life.engine, 1u << RESOURCE_KILLSWITCH |
				 1u << RESOURCE_ROUTING);
	engine_on_change(life.engine, on_change, &life);
	engine_set_desired(life.engine, want);
	if (engine_attach(life.engine) < 0 || sd_event_loop(host.event) < 0)
		return 1;
	(void)engine_free(life.engine);
	(void)sd_event_unref(host.event);
	return 0;
}

void agent_start(const char *state_dir, bool plain)
{
	int ready[2];
	char c;

	agent_dir = state_dir;
	agent_plain = plain;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	(void)fflush(NULL);
	agent_pid = fork();
	assert_true(agent_pid >= 0);
	if (agent_pid == 0) {
		char path[sizeof(dir) + 16];
		int log;

		(void)snprintf(path, sizeof(path), "%s/agent.log", dir);
		log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(log, 2);
		(void)close(ready[0]);
		_exit(agent(scene_desired(), state_dir, plain, ready[1]));
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	(void)close(ready[0]);
}

void agent_start_again(void)
{
	agent_start(agent_dir, agent_plain);
}

bool agent_lives(void)
{
	return agent_pid > 0;
}

void agent_end(int signal)
{
	if (!agent_pid)
		return;
	(void)kill(agent_pid, signal);
	assert_int_equal(waitpid(agent_pid, NULL, 0), agent_pid);
	agent_pid = 0;
}
