#include "spec/defaults.h"

const char *const defaults_modules[] = {
	"overlay", "br_netfilter", "nf_conntrack", "vxlan", NULL
};

const char *const defaults_longhorn_modules[] = {
	"iscsi_tcp", "dm_crypt", "nfs", NULL
};

const struct default_sysctl defaults_sysctls[] = {
	{ "net.ipv4.ip_forward", "1" },
	{ "net.bridge.bridge-nf-call-iptables", "1" },
	{ "net.bridge.bridge-nf-call-ip6tables", "1" },
	{ "fs.inotify.max_user_instances", "8192" },
	{ "fs.inotify.max_user_watches", "524288" },
	{ "vm.overcommit_memory", "1" },
	{ "vm.panic_on_oom", "0" },
	{ "kernel.panic", "10" },
	{ "kernel.panic_on_oops", "1" },
	{ "kernel.keys.root_maxkeys", "1000000" },
	{ "kernel.keys.root_maxbytes", "25000000" },
	{ 0 },
};

const char *const defaults_never_tunnelled[] = {
	"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7",
	"fe80::/10", NULL
};

/* sysctl.d(5): the first separator decides which of '.' and '/' it is. */
static char canonical(char c, char first)
{
	if (c != '.' && c != '/')
		return c;
	return c == first ? '.' : '/';
}

static char first_separator(const char *key)
{
	for (; *key; key++)
		if (*key == '.' || *key == '/')
			return *key;
	return '.';
}

bool defaults_same_sysctl(const char *a, const char *b)
{
	char sa = first_separator(a), sb = first_separator(b);

	for (; *a && *b; a++, b++)
		if (canonical(*a, sa) != canonical(*b, sb))
			return false;
	return *a == *b;
}
