#include "coordinator/addon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"
#include "coordinator/ask_servers.h"
#include "coordinator/control_client.h"
#include "coordinator/kube_read.h"
#include "coordinator/progress.h"
#include "proto/keys.h"
#include "spec/spec.h"

static int text_sum(const char *text, char ret_hex[65])
{
	uint8_t digest[32];
	int r = key_sha256(text, strlen(text), digest);

	if (r == 0)
		format_hex(digest, sizeof(digest), ret_hex);
	return r;
}

static void last_warning(struct kube *k, const char *name, char *why,
			 size_t size)
{
	struct fault scratch = FAULT_INIT;
	char path[256], text[256] = "";
	json_t *list = NULL;

	(void)snprintf(path, sizeof(path),
		       "/api/v1/namespaces/kube-system/events?fieldSelector="
		       "involvedObject.kind=Addon,involvedObject.name=%s",
		       name);
	if (kube_get(k, path, &list, &scratch) == 0)
		(void)kube_read_warning(list, text, sizeof(text));
	json_decref(list);
	if (text[0])
		(void)snprintf(why, size, "%s", text);
}

int addon_applied(struct kube *k, const struct addon *a, char *why,
		  size_t size, struct fault *f)
{
	char path[256], want[65], have[65];
	struct fault scratch = FAULT_INIT;
	json_t *o = NULL;
	int r = text_sum(a->text, want);

	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path),
		       "/apis/k3s.cattle.io/v1/namespaces/kube-system/addons/"
		       "%s", a->name);
	r = kube_get(k, path, &o, &scratch);
	if (r < 0 && r != -ENOENT)
		return fault_set(f, r, scratch.object, "%s", scratch.text);
	if (r == 0 && strcmp(kube_read_addon(o, have), want) == 0) {
		json_decref(o);
		return 1;
	}
	(void)snprintf(why, size, "%s", r == -ENOENT ?
		       "k3s has not read the manifest yet" :
		       "k3s has applied another version of the manifest");
	json_decref(o);
	last_warning(k, a->name, why, size);
	return 0;
}

static int fill_manifest(struct order *o, const void *what)
{
	const struct addon *a = what;
	size_t size = strlen(a->text);

	o->manifest.slot = a->slot;
	o->manifest.content.v = (uint8_t *)strdup(a->text);
	if (!o->manifest.content.v)
		return -ENOMEM;
	o->manifest.content.n = size;
	return key_sha256(a->text, size, o->manifest.sha256);
}

int addon_put(const struct step_env *env, const struct addon *a,
	      struct fault *f)
{
	return tell_servers(env, ORDER_PUT_MANIFEST, fill_manifest, a, f);
}

int addon_wait(const struct step_env *env, struct kube *k,
	       const struct addon *a, usec timeout, struct fault *f)
{
	usec deadline = clock_boottime() + timeout;
	char why[300] = "";

	for (;;) {
		struct fault scratch = FAULT_INIT;
		int r = addon_applied(k, a, why, sizeof(why), &scratch);

		if (r > 0)
			return 0;
		if (r < 0 && r != -EAGAIN)
			return fault_set(f, r, scratch.object, "%s",
					 scratch.text);
		if (r < 0)
			(void)fault_str(&scratch, why, sizeof(why));
		if (clock_boottime() >= deadline)
			return fault_set(f, -ETIMEDOUT, a->name,
					 "the manifest was not applied in "
					 "time: %s", why);
		progress_wait(env->progress, NULL, "addon %s: %s", a->name,
			      why);
		r = control_sleep(env->control,
				  clock_boottime() + env->times->poll);
		if (r < 0)
			return r;
	}
}
