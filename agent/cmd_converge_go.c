#include <errno.h>
#include <unistd.h>

#include "agent/cmd.h"
#include "agent/cmd_converge.h"
#include "agent/orders.h"
#include "agent/state.h"
#include "common/clock.h"
#include "proto/keys.h"

static int stored(const char *state_dir, struct desired **ret_desired,
		  struct fault *f)
{
	struct node_state state;
	int r;

	key_init();
	if (access(state_dir, F_OK) < 0)
		return fault_set(f, -ENOENT, state_dir,
				 "no desired state was ever accepted here; "
				 "give one with --spec");
	r = state_load(state_dir, clock_boottime(), &state, NULL);
	if (r < 0)
		return fault_errno(f, r, state_dir, "cannot be read");
	r = orders_stored_desired(&state, ret_desired, f);
	state_done(&state);
	if (r > 0)
		return fault_set(f, -ENOENT, state_dir,
				 "no desired state was ever accepted here; "
				 "give one with --spec");
	return r;
}

int cmd_converge(int argc, char **argv)
{
	static const struct converge_way way = { stored, converge };

	return cmd_converge_by(argc, argv, &way);
}
