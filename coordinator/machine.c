#include "coordinator/machine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAGIC "garboard-probe-1\n"
#define LINE_MAX_ 128

/*
 * What needs root is asked through sudo -n, which fails quietly where that
 * may not be; the login itself is judged by the first lines.
 */
const char machine_probe[] =
	"export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"
	"echo garboard-probe-1\n"
	"echo \"login $(id -un)\"\n"
	"if [ \"$(id -u)\" = 0 ]; then echo root yes; s=\n"
	"elif sudo -n true 2>/dev/null; then echo sudo yes; s=\"sudo -n\"\n"
	"else exit 0; fi\n"
	"echo \"os $(. /etc/os-release && echo $ID $VERSION_ID)\"\n"
	"echo \"arch $(dpkg --print-architecture 2>/dev/null)\"\n"
	"echo \"hostname $(uname -n)\"\n"
	"[ ! -d /run/systemd/system ] || echo systemd yes\n"
	"v=$(garboard-agent version 2>/dev/null) && echo \"agent ${v##* }\"\n"
	"b=/etc/garboard/bundle/bundle\n"
	"$s test ! -e $b || echo \"cluster $($s sed -n \"s/^cluster-id //p\" $b)\"\n"
	"! $s test -s /var/lib/garboard-link/tls.crt || echo enrolled yes\n"
	"n=$($s garboard-agent status -o json 2>/dev/null | sed -n "
	"\"s/.*\\\"node_id\\\": *\\\"\\([0-9a-f]*\\)\\\".*/\\1/p\")\n"
	"[ -z \"$n\" ] || echo \"id $n\"\n";

const char machine_install[] =
	"set -e\n"
	"export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"
	"export DEBIAN_FRONTEND=noninteractive\n"
	"say() { echo \"$*\" >&2; exit 1; }\n"
	"umask 022\n"
	"d=$(mktemp -d /var/tmp/garboard-enroll.XXXXXX)\n"
	"trap \"rm -rf $d\" EXIT\n"
	"trap \"exit 1\" HUP INT TERM PIPE\n"
	"f=$d/garboard-agent.deb\n"
	"read -r sum\n"
	"cat >$f\n"
	"echo \"$sum  $f\" | sha256sum -c --status - ||\n"
	"	say \"the package did not arrive whole; nothing was installed\"\n"
	"[ \"$(dpkg-deb -f $f Package 2>/dev/null)\" = garboard-agent ] ||\n"
	"	say \"that is no package garboard-agent\"\n"
	"a=$(dpkg-deb -f $f Architecture); v=$(dpkg-deb -f $f Version)\n"
	"[ \"$a\" = all ] || [ \"$a\" = \"$(dpkg --print-architecture)\" ] ||\n"
	"	say \"the package is for $a, this machine is not\"\n"
	"q=\"\\${db:Status-Status} \\${Version}\"\n"
	"old=$(dpkg-query -W -f \"$q\" garboard-agent 2>/dev/null || :)\n"
	"[ \"$old\" != \"installed $v\" ] || { echo \"same $v\"; exit 0; }\n"
	"case $old in installed*)\n"
	"	dpkg --compare-versions \"${old#* }\" lt \"$v\" ||\n"
	"		say \"${old#* } is installed, $v is older; nothing was installed\"\n"
	"	how=up;;\n"
	"*)	how=new;; esac\n"
	"if command -v apt-get >/dev/null; then\n"
	"	set -- apt-get -y -o DPkg::Lock::Timeout=120 install $f\n"
	"else set -- dpkg -i $f; fi\n"
	"\"$@\" </dev/null >$d/log 2>&1 || {\n"
	"	tail -n 4 $d/log >&2\n"
	"	[ $how = up ] || dpkg --purge garboard-agent >/dev/null 2>&1 || :\n"
	"	exit 1; }\n"
	"echo \"$how $v\"\n";

#define UNITS                                                                 \
	"garboard-agent-link.socket garboard-agent-status.socket "            \
	"garboard-lockdown.service garboard-agent.service "                   \
	"garboard-link.service"

/*
 * The old bundle comes back when a unit does not start. The agent reads it
 * once, so it is restarted; that opens nothing.
 */
const char machine_bundle[] =
	"set -e\n"
	"umask 077\n"
	"d=/etc/garboard/bundle\n"
	"mkdir -p -m 755 /etc/garboard\n"
	"mkdir -p $d\n"
	"chmod 700 $d\n"
	"trap \"rm -f $d/.new-* $d/.old-*\" EXIT\n"
	"trap \"exit 1\" HUP INT TERM PIPE\n"
	"take() { while IFS= read -r l; do\n"
	"	[ \"$l\" != . ] || return 0\n"
	"	printf \"%s\\n\" \"$l\"; done; return 1; }\n"
	"take >$d/.new-ca.pem && take >$d/.new-bundle ||\n"
	"	{ echo \"the bundle did not arrive whole; nothing was written\" >&2; exit 1; }\n"
	"sync $d/.new-ca.pem $d/.new-bundle\n"
	"undo() {\n"
	"	for n in bundle ca.pem; do\n"
	"		if [ -e $d/.old-$n ]; then mv -f $d/.old-$n $d/$n\n"
	"		else rm -f $d/$n; fi\n"
	"	done\n"
	"	[ -e $d/bundle ] || systemctl stop garboard-link.service || :\n"
	"	systemctl restart garboard-agent.service || :\n"
	"}\n"
	"for n in ca.pem bundle; do\n"
	"	[ ! -e $d/$n ] || cp -p $d/$n $d/.old-$n\n"
	"	mv -f $d/.new-$n $d/$n\n"
	"done\n"
	"sync $d\n"
	"go() { systemctl daemon-reload &&\n"
	"	systemctl enable --quiet " UNITS " &&\n"
	"	systemctl restart garboard-agent.service garboard-link.service; }\n"
	"go 2>$d/.new-said || { tail -n 3 $d/.new-said >&2; undo 2>/dev/null; exit 1; }\n";

const char machine_start[] =
	"systemctl enable --quiet " UNITS " &&\n"
	"systemctl start garboard-agent.service garboard-link.service\n";

const char machine_why[] =
	"garboard-agent status | sed -n \"s/^session  *//p\"\n"
	"journalctl -u garboard-link -n 1 -o cat --no-pager\n";

/* ---- what was found ---- */

static void copy(char *to, size_t size, const char *from)
{
	(void)snprintf(to, size, "%s", from);
	fault_sanitize(to);
}

static void take_line(struct machine *m, const char *key, const char *value)
{
	const struct {
		const char *key;
		char *text;
		size_t size;
		bool *flag;
	} fields[] = {
		{ "root", NULL, 0, &m->root },
		{ "sudo", NULL, 0, &m->sudo },
		{ "systemd", NULL, 0, &m->systemd },
		{ "enrolled", NULL, 0, &m->enrolled },
		{ "login", m->login, sizeof(m->login), NULL },
		{ "os", m->os, sizeof(m->os), NULL },
		{ "arch", m->arch, sizeof(m->arch), NULL },
		{ "hostname", m->hostname, sizeof(m->hostname), NULL },
		{ "agent", m->agent, sizeof(m->agent), NULL },
		{ "cluster", m->cluster, sizeof(m->cluster), NULL },
		{ "id", m->node_id, sizeof(m->node_id), NULL },
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (strcmp(fields[i].key, key) != 0)
			continue;
		if (fields[i].flag)
			*fields[i].flag = strcmp(value, "yes") == 0;
		else
			copy(fields[i].text, fields[i].size, value);
	}
}

int machine_parse(const char *text, struct machine *ret_machine,
		  struct fault *f)
{
	/* A login's own profile may have printed something first. */
	const char *p = strstr(text, MAGIC);
	struct machine m = { .root = false };

	if (!p)
		return fault_set(f, -EPROTO, "machine",
				 "its answer is none: has the login a shell?");
	p += strlen(MAGIC);
	while (*p) {
		size_t n = strcspn(p, "\n");
		char line[LINE_MAX_], *value;

		(void)snprintf(line, sizeof(line), "%.*s", (int)n, p);
		value = strchr(line, ' ');
		if (value) {
			*value++ = '\0';
			take_line(&m, line, value);
		}
		p += n + (p[n] == '\n');
	}
	*ret_machine = m;
	return 0;
}

/* ---- what may be done ---- */

int machine_usable(const struct machine *m, bool deb, struct fault *f)
{
	if (!m->root && !m->sudo)
		return fault_set(f, -EOPNOTSUPP, m->login,
				 "may not become root there without a password "
				 "(sudo -n): give root@HOST, or allow it");
	if (!m->systemd)
		return fault_set(f, -EOPNOTSUPP, m->hostname,
				 "does not run systemd, which every node needs");
	if (deb && !m->arch[0])
		return fault_set(f, -EOPNOTSUPP, m->os,
				 "has no dpkg: install garboard-agent in its "
				 "own way, then leave --deb out");
	if (!deb && !m->agent[0])
		return fault_set(f, -EOPNOTSUPP, m->hostname,
				 "has no garboard-agent: give its package with "
				 "--deb FILE");
	return 0;
}

int machine_judge(const struct machine *m, const struct machine_case *c,
		  enum machine_verdict *ret_verdict, struct fault *f)
{
	if (m->cluster[0] && strcmp(m->cluster, c->cluster_id) != 0)
		return fault_set(f, -EACCES, m->hostname,
				 "belongs to cluster %s; to move it, on it: "
				 "systemctl stop garboard-link garboard-agent; "
				 "garboard-agent reset-identity --confirm; rm "
				 "-r /etc/garboard/bundle", m->cluster);
	if (m->enrolled && c->known) {
		if (strcmp(c->known_as, c->name) != 0)
			return fault_set(f, -EACCES, m->hostname,
					 "is node %s already, not %s",
					 c->known_as, c->name);
		if (c->bad && c->bad[0])
			return fault_set(f, -EACCES, c->name, "%s", c->bad);
		*ret_verdict = MACHINE_KEEP;
		return 0;
	}
	if (m->node_id[0] && !c->known)
		return fault_set(f, -EACCES, m->hostname,
				 "has an identity that this coordinator does "
				 "not know; on it: systemctl stop garboard-link "
				 "garboard-agent; garboard-agent reset-identity "
				 "--confirm");
	if (c->name_taken)
		return fault_set(f, -EACCES, c->name,
				 "is another machine's name: give --node, or "
				 "end that one with garboard node revoke");
	*ret_verdict = MACHINE_SET_UP;
	return 0;
}
