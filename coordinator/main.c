/*
 * garboard - the coordinator and its command line. The table of verbs is
 * cli/verbs.c; this file only hands over.
 */
#include "coordinator/cli/cli.h"
#include "proto/keys.h"

int main(int argc, char **argv)
{
	/* Before anything uses libcrypto: no configuration file is read. */
	key_init();
	return cli_run(argc, argv);
}
