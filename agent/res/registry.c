#include "agent/res/resource.h"
#include "agent/res/iscsid.h"
#include "agent/res/killswitch.h"
#include "agent/res/modules.h"
#include "agent/res/mounts.h"
#include "agent/res/routing.h"
#include "agent/res/swap.h"
#include "agent/res/sysctl.h"
#include "agent/res/timezone.h"

/* A seventh resource is one pair of files and one line here. */
const struct resource *const resource_registry[RESOURCE_MAX] = {
	[RESOURCE_KILLSWITCH] = &resource_killswitch,
	[RESOURCE_ROUTING] = &resource_routing,
	[RESOURCE_MODULES] = &resource_modules,
	[RESOURCE_SYSCTL] = &resource_sysctl,
	[RESOURCE_TIMEZONE] = &resource_timezone,
	[RESOURCE_ISCSID] = &resource_iscsid,
	[RESOURCE_SWAP] = &resource_swap,
	[RESOURCE_MOUNTS] = &resource_mounts,
};
