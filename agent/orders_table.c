#include "agent/orders_job.h"

order_handler orders_handler(enum order_kind kind)
{
	static const order_handler handlers[] = {
		[ORDER_SET_DESIRED] = order_set_desired,
		[ORDER_BLOB] = order_blob,
		[ORDER_K3S_INSTALL] = order_k3s_install,
		[ORDER_K3S_CONFIGURE] = order_k3s_configure,
		[ORDER_K3S_START] = order_k3s_start,
		[ORDER_K3S_STOP] = order_k3s_stop,
		[ORDER_K3S_RESET] = order_k3s_reset,
		[ORDER_PUT_MANIFEST] = order_put_manifest,
		[ORDER_READ_FACTS] = order_read_facts,
		[ORDER_READ_CREDENTIAL] = order_read_credential,
		[ORDER_LEASE] = order_lease,
		[ORDER_PROBE] = order_probe,
		[ORDER_REBOOT] = order_reboot,
		[ORDER_DISARM] = order_disarm,
		[ORDER_ARM] = order_arm,
		[ORDER_TRUST_UPDATE] = order_trust_update,
		[ORDER_OPEN_STREAM] = order_open_stream,
		[ORDER_RECORD_FOUNDING] = order_record_founding,
	};
	_Static_assert(sizeof(handlers) / sizeof(handlers[0]) ==
			       ORDER_KIND_MAX,
		       "every order has a handler");

	return kind < ORDER_KIND_MAX ? handlers[kind] : NULL;
}
