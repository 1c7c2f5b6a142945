#include "agent/sockets.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"

#define BACKLOG 8

static int listen_at(const char *run_dir, const char *name, mode_t mode,
		     gid_t gid, int *ret_fd, struct fault *f)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;
	int n;

	n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%s", run_dir, name);
	if (n < 0 || (size_t)n >= sizeof(sa.sun_path))
		return fault_set(f, -ENAMETOOLONG, run_dir, "path too long");
	(void)unlink(sa.sun_path);	/* of a dead agent: we hold the lock */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 ||
	    bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return fault_errno(f, -errno, sa.sun_path, "cannot listen");
	if (gid && chown(sa.sun_path, 0, gid) < 0)
		mode |= 0006;	/* each peer is checked anyway */
	if (chmod(sa.sun_path, mode) < 0)
		return fault_errno(f, -errno, sa.sun_path, "cannot listen");
	*ret_fd = take_fd(&fd);
	return 0;
}

static void take_from_systemd(int *ret_link, int *ret_status)
{
	char **names = NULL;
	int i, n = sd_listen_fds_with_names(1, &names);

	for (i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		if (strcmp(names[i], "link") == 0 && *ret_link < 0)
			*ret_link = fd;
		else if (strcmp(names[i], "status") == 0 && *ret_status < 0)
			*ret_status = fd;
		else
			(void)close(fd);
		free(names[i]);
	}
	free(names);
}

int sockets_get(const char *run_dir, const char *user, int *ret_link,
		int *ret_status, struct fault *f)
{
	_cleanup_close_ int link = -1, status = -1;
	const struct passwd *pw = getpwnam(user);
	int r;

	take_from_systemd(&link, &status);
	r = link >= 0 && status >= 0 ? 0 : file_mkdirs(run_dir, 0755, f);
	if (r == 0 && link < 0)
		r = listen_at(run_dir, "link.sock", pw ? 0660 : 0600,
			      pw ? pw->pw_gid : 0, &link, f);
	if (r == 0 && status < 0)
		r = listen_at(run_dir, "status.sock", 0666, 0, &status, f);
	if (r < 0)
		return r;
	*ret_link = take_fd(&link);
	*ret_status = take_fd(&status);
	return 0;
}
