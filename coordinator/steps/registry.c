#include "coordinator/steps/step.h"

extern const struct step step_preflight, step_baseline, step_founder,
	step_joiners, step_kube_vip, step_cilium, step_verify;

/* The order of A64. An eighth step is one file and one line here. */
const struct step *const step_registry[STEP_MAX] = {
	[STEP_PREFLIGHT] = &step_preflight,
	[STEP_BASELINE] = &step_baseline,
	[STEP_FOUNDER] = &step_founder,
	[STEP_JOINERS] = &step_joiners,
	[STEP_KUBE_VIP] = &step_kube_vip,
	[STEP_CILIUM] = &step_cilium,
	[STEP_VERIFY] = &step_verify,
};

static usec seconds(double n, double scale)
{
	usec t = (usec)(n * (double)USEC_PER_SEC / scale);

	return t ? t : 1;
}

void step_times_init(struct step_times *t, double scale)
{
	*t = (struct step_times){
		.poll = seconds(2, scale),
		.order = seconds(30, 1),
		.install = seconds(300, 1),
		.settle = seconds(120, 1),
		.start = seconds(600, scale),
		.join = seconds(600, scale),
		.vip = seconds(300, scale),
		/* A54: the lease is 15 s; more than two of them. */
		.vip_proof = seconds(35, scale),
		.rollout = seconds(900, scale),
	};
}
