/*
 * garboard - the coordinator and its command line. The table of verbs is
 * cli/verbs.c; this file only hands over.
 */
#include <sys/resource.h>

#include "coordinator/cli/cli.h"
#include "proto/keys.h"

int main(int argc, char **argv)
{
	static const struct rlimit none;

	/* Keys and the k3s token are in this memory: no copy of it on disk. */
	(void)setrlimit(RLIMIT_CORE, &none);
	/* Before anything uses libcrypto: no configuration file is read. */
	key_init();
	return cli_run(argc, argv);
}
