/* garboard-metrics: HTTP for Prometheus; see garboard-metrics.socket. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "agent/metrics/http.h"
#include "agent/status.h"

int main(int argc, char **argv)
{
	const char *socket = STATUS_SOCKET;
	int r;

	if (argc == 3 && strcmp(argv[1], "--socket") == 0)
		socket = argv[2];
	else if (argc != 1) {
		(void)fputs("usage: garboard-metrics [--socket PATH]\n",
			    stderr);
		return 64;
	}
	if (sd_listen_fds(1) != 1 ||
	    sd_is_socket(SD_LISTEN_FDS_START, AF_UNSPEC, SOCK_STREAM, 1) <= 0) {
		(void)fputs("garboard-metrics: started without its socket: "
			    "start garboard-metrics.socket\n", stderr);
		return EXIT_FAILURE;
	}
	if (fcntl(SD_LISTEN_FDS_START, F_SETFL, O_NONBLOCK) < 0) {
		perror("garboard-metrics: socket");
		return EXIT_FAILURE;
	}
	r = http_serve(SD_LISTEN_FDS_START, socket);
	(void)fprintf(stderr, "garboard-metrics: cannot serve: %s\n",
		      strerror(-r));
	return EXIT_FAILURE;
}
