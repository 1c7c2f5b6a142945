#include "agent/facts.h"

#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"

#define INITIATOR_KEY "InitiatorName="

static void read_line(const char *root, const char *path, char *buf,
		      size_t size)
{
	char full[PATH_MAX];

	buf[0] = '\0';
	(void)snprintf(full, sizeof(full), "%s%s", root, path);
	if (file_line(full, buf, size, NULL) < 0)
		buf[0] = '\0';
	fault_sanitize(buf);
}

static void read_initiator(const char *root, char *buf, size_t size)
{
	_cleanup_free_ char *text = NULL;
	char full[PATH_MAX], *line, *next;
	size_t n;

	(void)snprintf(full, sizeof(full), "%s/etc/iscsi/initiatorname.iscsi",
		       root);
	if (file_read(full, 65536, &text, &n, NULL) < 0)
		return;
	for (next = text; (line = strsep(&next, "\n"));) {
		if (strncmp(line, INITIATOR_KEY, strlen(INITIATOR_KEY)) != 0)
			continue;
		line += strlen(INITIATOR_KEY);
		n = strnlen(line, size - 1);
		memcpy(buf, line, n);
		buf[n] = '\0';
		fault_sanitize(buf);
		return;
	}
}

/* Of interfaces with a device: clones and bridges say nothing about us. */
static int read_macs(struct strlist *macs)
{
	_cleanup_closedir_ DIR *dir = opendir("/sys/class/net");
	char path[PATH_MAX], mac[64];
	struct dirent *d;
	int r;

	while (dir && macs->n < UP_LIST_MAX && (d = readdir(dir))) {
		if (d->d_name[0] == '.' || strcmp(d->d_name, "lo") == 0)
			continue;
		(void)snprintf(path, sizeof(path),
			       "/sys/class/net/%s/address", d->d_name);
		if (file_line(path, mac, sizeof(mac), NULL) < 0 ||
		    strcmp(mac, "00:00:00:00:00:00") == 0)
			continue;
		if (strncmp(d->d_name, "cilium", 6) == 0 ||
		    strncmp(d->d_name, "lxc", 3) == 0)
			continue;
		r = strlist_add(macs, mac);
		if (r < 0)
			return r;
	}
	strlist_sort(macs);
	return 0;
}

static bool from_sockaddr(const struct sockaddr *sa, struct ip_addr *ret)
{
	struct ip_addr a = { 0 };

	if (!sa)
		return false;
	if (sa->sa_family == AF_INET) {
		a.family = AF_INET;
		memcpy(a.bytes,
		       &((const struct sockaddr_in *)(const void *)sa)->sin_addr,
		       4);
	} else if (sa->sa_family == AF_INET6) {
		a.family = AF_INET6;
		memcpy(a.bytes,
		       &((const struct sockaddr_in6 *)(const void *)sa)
				->sin6_addr,
		       16);
	} else {
		return false;
	}
	*ret = a;
	return true;
}

static int read_addresses(struct strlist *addresses)
{
	struct ifaddrs *all = NULL, *i;
	char text[IP_TEXT_MAX];
	struct ip_addr a;
	int r = 0;

	if (getifaddrs(&all) < 0)
		return 0;
	for (i = all; i && r == 0 && addresses->n < UP_LIST_MAX;
	     i = i->ifa_next) {
		if (strcmp(i->ifa_name, "lo") == 0 ||
		    !from_sockaddr(i->ifa_addr, &a))
			continue;
		(void)ip_addr_format(&a, text);
		if (!strlist_has(addresses, text))
			r = strlist_add(addresses, text);
	}
	freeifaddrs(all);
	strlist_sort(addresses);
	return r;
}

int facts_identity(const char *root, struct identity *ret_identity)
{
	struct identity id = { 0 };
	struct utsname uts;
	int r;

	if (uname(&uts) == 0) {
		(void)snprintf(id.hostname, sizeof(id.hostname), "%s",
			       uts.nodename);
		(void)snprintf(id.kernel, sizeof(id.kernel), "%s",
			       uts.release);
		fault_sanitize(id.hostname);
	}
	read_line(root, "/etc/machine-id", id.machine_id,
		  sizeof(id.machine_id));
	read_line("", "/sys/class/dmi/id/product_uuid", id.product_uuid,
		  sizeof(id.product_uuid));
	read_line("", "/sys/class/dmi/id/product_serial", id.serial,
		  sizeof(id.serial));
	read_line("", "/proc/sys/kernel/random/boot_id", id.boot_id,
		  sizeof(id.boot_id));
	read_initiator(root, id.initiator_name, sizeof(id.initiator_name));
	(void)snprintf(id.agent_version, sizeof(id.agent_version), "%s",
		       GARBOARD_VERSION);
	r = read_macs(&id.macs);
	if (r == 0)
		r = read_addresses(&id.addresses);
	if (r < 0) {
		identity_done(&id);
		return r;
	}
	*ret_identity = id;
	return 0;
}

bool facts_carries(const struct ip_addr *address)
{
	struct ifaddrs *all = NULL, *i;
	bool found = false;
	struct ip_addr a;

	if (!address->family || getifaddrs(&all) < 0)
		return false;
	for (i = all; i && !found; i = i->ifa_next)
		found = from_sockaddr(i->ifa_addr, &a) &&
			ip_addr_cmp(&a, address) == 0;
	freeifaddrs(all);
	return found;
}

static bool same_subnet(const struct ip_addr *a, const struct ip_addr *mask,
			const struct ip_addr *b)
{
	unsigned int i, n = ip_addr_bits(a) / 8;
	bool any = false;

	for (i = 0; i < n; i++) {
		if ((a->bytes[i] ^ b->bytes[i]) & mask->bytes[i])
			return false;
		/* A host mask is an address, not a subnet to be on. */
		any = any || mask->bytes[i] != 0xff;
	}
	return any;
}

int facts_interfaces_for(const struct ip_addr *address,
			 struct strlist *ret_names)
{
	struct ifaddrs *all = NULL, *i;
	struct strlist names = STRLIST_INIT;
	struct ip_addr a, mask;
	int r = 0;

	if (getifaddrs(&all) < 0)
		return -errno;
	for (i = all; i && r == 0; i = i->ifa_next) {
		if (!from_sockaddr(i->ifa_addr, &a) ||
		    a.family != address->family ||
		    !from_sockaddr(i->ifa_netmask, &mask) ||
		    !same_subnet(&a, &mask, address) ||
		    strlist_has(&names, i->ifa_name))
			continue;
		r = strlist_add(&names, i->ifa_name);
	}
	freeifaddrs(all);
	if (r < 0) {
		strlist_done(&names);
		return r;
	}
	strlist_sort(&names);
	*ret_names = names;
	return 0;
}

static bool steers(const struct desired_egress *e, const char *interface)
{
	size_t i;

	for (i = 0; i < e->n_classes; i++)
		if (e->classes[i].gateway &&
		    strcmp(e->tunnels[e->classes[i].tunnel].name,
			   interface) == 0)
			return true;
	return false;
}

static bool link_local(const struct ip_addr *a)
{
	if (a->family == AF_INET6)
		return a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80;
	return a->bytes[0] == 169 && a->bytes[1] == 254;
}

int facts_tunnels(const struct desired_egress *egress,
		  struct strlist *ret_texts)
{
	char text[IF_NAMESIZE + IP_TEXT_MAX], addr[IP_TEXT_MAX];
	struct strlist list = STRLIST_INIT;
	struct ifaddrs *all = NULL, *i;
	struct ip_addr a;
	int r = 0;

	if (getifaddrs(&all) < 0)
		all = NULL;
	for (i = all; i && r == 0 && list.n < UP_LIST_MAX; i = i->ifa_next) {
		if (!from_sockaddr(i->ifa_addr, &a) || link_local(&a) ||
		    !steers(egress, i->ifa_name))
			continue;
		(void)snprintf(text, sizeof(text), "%s %s", i->ifa_name,
			       ip_addr_format(&a, addr));
		r = strlist_add(&list, text);
	}
	freeifaddrs(all);
	if (r < 0) {
		strlist_done(&list);
		return r;
	}
	strlist_sort(&list);
	*ret_texts = list;
	return 0;
}

bool facts_clock_synchronised(void)
{
	struct timex t = { .modes = 0 };

	return adjtimex(&t) >= 0 && !(t.status & STA_UNSYNC);
}

int facts_leftovers(const char *root, struct strlist *ret_paths)
{
	static const char *const paths[] = {
		"/etc/cni/net.d",
		"/etc/rancher/k3s/config.yaml",
		"/etc/rancher/node/password",
		"/run/flannel",
		"/var/lib/cni",
		"/var/lib/kubelet",
		"/var/lib/rancher/k3s/agent",
		"/var/lib/rancher/k3s/server/db",
		"/var/lib/rancher/k3s/server/db/etcd/tombstone",
		"/var/lib/rancher/k3s/server/tls",
		"/var/lib/rancher/k3s/server/token",
	};
	struct strlist found = STRLIST_INIT;
	char full[PATH_MAX];
	struct stat st;
	size_t i;
	int r;

	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		(void)snprintf(full, sizeof(full), "%s%s", root, paths[i]);
		if (lstat(full, &st) < 0)
			continue;
		r = strlist_add(&found, paths[i]);
		if (r < 0) {
			strlist_done(&found);
			return r;
		}
	}
	*ret_paths = found;
	return 0;
}
