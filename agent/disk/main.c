/*
 * garboard-disk NAME: one visit to the disk that the agent's note NAME is
 * about (agent/disk/note.h), run by garboard-disk@NAME.service.
 */
#include <stdio.h>
#include <string.h>

#include "agent/disk/make.h"

#define STATE_DIR "/var/lib/garboard"

int main(int argc, char **argv)
{
	struct fault f = FAULT_INIT;
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];

	if (argc != 2) {
		(void)fprintf(stderr, "usage: garboard-disk NAME\n");
		return 2;
	}
	if (disk_visit(STATE_DIR, argv[1], &f) < 0) {
		(void)fprintf(stderr, "garboard-disk: %s\n",
			      fault_str(&f, text, sizeof(text)));
		return 1;
	}
	return 0;
}
