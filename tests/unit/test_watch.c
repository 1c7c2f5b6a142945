/*
 * The host's resources hear of drift: files by inotify, modules by uevent,
 * links by rtnetlink. Only that they look again matters, not what they see.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "scratch.h"

#include "resource_run.h"

#include "agent/res/iscsid.h"
#include "agent/res/modules.h"
#include "agent/res/sysctl.h"
#include "agent/res/timezone.h"
#include "common/clock.h"

#define PATIENCE (5 * USEC_PER_SEC)

static void count(void *userdata)
{
	(*(int *)userdata)++;
}

/* Handles what is ready; true when the resource asked to look again. */
static bool heard(struct run *run, int *looks)
{
	usec end = clock_boottime() + PATIENCE;

	while (!*looks && clock_boottime() < end)
		assert_true(sd_event_run(run->host.event,
					 100 * USEC_PER_MSEC) >= 0);
	return *looks > 0;
}

static bool silent(struct run *run, int *looks)
{
	int r;

	do
		r = sd_event_run(run->host.event, 0);
	while (r > 0);
	assert_int_equal(r, 0);
	return *looks == 0;
}

static void watched(struct run *run, const struct resource *res, int *looks)
{
	run_open(run, res);
	run->want->iscsid = true;
	assert_int_equal(sd_event_new(&run->host.event), 0);
	assert_int_equal(desired_add_sysctl(run->want, "net.ipv4.ip_forward",
					    "1", false), 0);
	assert_int_equal(res->watch(run->st, run->want, count, looks, NULL),
			 0);
	look(run);
	assert_true(silent(run, looks));
}

static void closed(struct run *run)
{
	sd_event *event = run->host.event;

	run_close(run);
	sd_event_unref(event);
}

static void files(void **state)
{
	static const struct {
		const struct resource *res;
		const char *dir, *file;
	} t[] = {
		{ &resource_sysctl, "/etc/sysctl.d", "/99-x.conf" },
		{ &resource_sysctl, "/proc/sys/net/ipv4", "/ip_forward" },
		{ &resource_modules, "/etc/modules-load.d",
		  "/garboard.conf" },
		{ &resource_modules, "/etc/modprobe.d", "/no.conf" },
		{ &resource_timezone, "/etc", "/localtime" },
		{ &resource_iscsid, "/etc/iscsi", "/initiatorname.iscsi" },
	};
	char path[128];
	size_t i;

	(void)state;
	put("/proc/sys/net/ipv4/ip_forward", "1\n");
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct run run;
		int looks = 0;

		scratch_dir(t[i].dir);
		watched(&run, t[i].res, &looks);
		(void)snprintf(path, sizeof(path), "%s%s", t[i].dir,
			       t[i].file);
		put(path, "1\n");
		assert_true(heard(&run, &looks));
		/* Watching again only adjusts, and adds no second event. */
		looks = 0;
		assert_int_equal(t[i].res->watch(run.st, run.want, count,
						 &looks, NULL), 0);
		assert_true(silent(&run, &looks));
		closed(&run);
	}
}

/* Since 4.18 the kernel passes a uevent on to those of its namespace. */
static void inject(const char *text, size_t size)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct iovec iov = { (void *)text, size };
	struct nlmsghdr head = {
		.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + size),
		.nlmsg_type = NLMSG_MIN_TYPE,
		.nlmsg_flags = NLM_F_REQUEST,
	};
	struct iovec v[2] = { { &head, NLMSG_HDRLEN }, iov };
	struct msghdr m = { .msg_name = &kernel,
			    .msg_namelen = sizeof(kernel),
			    .msg_iov = v, .msg_iovlen = 2 };
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
					NETLINK_KOBJECT_UEVENT);

	assert_true(fd >= 0);
	assert_int_equal(sendmsg(fd, &m, 0), NLMSG_HDRLEN + size);
}

static void uevents(void **state)
{
	static const struct resource *const res[] = { &resource_modules,
						      &resource_sysctl };
	static const char other[] = "add@/devices/virtual/x\0ACTION=add\0"
				    "DEVPATH=/devices/virtual/x";
	static const char module[] = "add@/module/dummy\0ACTION=add\0"
				     "DEVPATH=/module/dummy";
	size_t i;

	(void)state;
	if (unshare(CLONE_NEWNET) < 0)
		skip();
	for (i = 0; i < sizeof(res) / sizeof(res[0]); i++) {
		struct run run;
		int looks = 0;

		watched(&run, res[i], &looks);
		inject(other, sizeof(other));
		assert_true(silent(&run, &looks));
		inject(module, sizeof(module));
		assert_true(heard(&run, &looks));
		closed(&run);
	}
}

static void links(void **state)
{
	struct ifreq ifr = { .ifr_name = "lo" };
	_cleanup_close_ int fd = -1;
	struct run run;
	int looks = 0;

	(void)state;
	if (unshare(CLONE_NEWNET) < 0)
		skip();
	watched(&run, &resource_sysctl, &looks);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(ioctl(fd, SIOCGIFFLAGS, &ifr), 0);
	ifr.ifr_flags |= IFF_UP;
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &ifr), 0);
	assert_true(heard(&run, &looks));
	closed(&run);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, scratch_make, scratch_drop)
	const struct CMUnitTest tests[] = {
		T(files),
		T(uevents),
		T(links),
	};

	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
