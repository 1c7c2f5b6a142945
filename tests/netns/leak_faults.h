/*
 * leak_faults.h - what is done to the node of the leak harness.
 *
 * A fault takes away layers (of the kill-switch and of what repairs it) or
 * moves what they stand on. `fault_act` does several in the same instant:
 * processes first, then all commands side by side.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "leak_scene.h"

enum {
	STRIPS_NFT = 1,		/* tables, where nobody owns them */
	STRIPS_ROUTING = 2,	/* rules or routes */
	STRIPS_AGENT = 4,	/* nobody repairs until it is started */
	STRIPS_TUNNEL = 8,	/* the client is started again after it */
	BREAKS_NET = 16,	/* by itself, for everybody */
	MOVES_UPLINK = 32,	/* hooks hang on the device's name */
	FAKES_TUNNEL = 64,
	FILLS_DISK = 128,	/* the file system of the state directory */
};

struct leak_fault {
	const char *name;
	unsigned int flags;
	int agent, tunnel;	/* signals, 0: none */
	const char *sh;		/* in the node */
	void (*act)(void);
	void (*agent_act)(void);	/* to a node with one of ours only */
	void (*undo_act)(void);
	const char *undo;	/* before processes are started again */
};

extern const struct leak_fault leak_faults[];
size_t leak_faults_count(void);
/* Restarts by the hundred; a pair is played with a few. */
void faults_many(bool yes);
const struct leak_fault *leak_fault_find(const char *name);

void fault_act(const struct leak_fault *const *v, size_t n);
/* Brings back what the faults took but the agent must repair itself. */
void fault_undo(const struct leak_fault *const *v, size_t n,
		enum scripts scripts);
