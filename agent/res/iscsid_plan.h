/*
 * iscsid_plan.h - can the node be an iSCSI initiator, and what is to be
 * done about it. Pure. Items: package, iscsi_tcp, initiatorname, iscsid,
 * "iscsid (enabled)", multipathd. None when the storage needs no iSCSI.
 */
#pragma once

#include "agent/bus/systemd1.h"
#include "agent/res/iscsid_read.h"
#include "agent/res/resource.h"

enum iscsid_unit {
	ISCSID_SERVICE,
	ISCSID_SOCKET,
	MULTIPATHD_SERVICE,
	MULTIPATHD_SOCKET,
	ISCSID_UNIT_MAX,
};

struct iscsid_seen {
	bool installed, has_tcp, multipath_tamed;
	char tcp_obstacle[FAULT_TEXT_MAX];	/* why iscsi_tcp is not there */
	enum iscsid_name name_state;
	int name_err;
	char name[ISCSID_NAME_MAX];
	int sessions;
	bool unit_known[ISCSID_UNIT_MAX];
	struct systemd1_unit unit[ISCSID_UNIT_MAX];
	bool working;			/* we asked, and it is not over */
	char failed[FAULT_TEXT_MAX];	/* why our last attempt failed */
};

int iscsid_plan(const struct desired *want, const void *seen,
		struct item_list *items, struct change_list *changes,
		struct fault *f);
