/*
 * kmod_options.h - parameters of modules: what modprobe.d(5) asks for, and
 * what a running module has.
 *
 * A parameter is read by a module when it is loaded, so a file that was
 * written later is true after the next boot only. Reads, judges, changes
 * nothing; a parameter that the kernel does not show is not judged.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/fault.h"

struct kmod_option {
	char *module, *param, *value;
	char *cause;		/* "/etc/modprobe.d/x.conf:3" */
};

struct kmod_options {
	struct kmod_option *v;
	size_t n;
};

int kmod_options_read(const char *root, struct kmod_options *ret_options,
		      struct fault *f);
void kmod_options_done(struct kmod_options *o);
/*
 * Which parameter of the loaded module is not what the files ask for, as a
 * sentence in `buf`; false: none is.
 */
bool kmod_options_drift(const char *root, const struct kmod_options *o,
			const char *module, char *buf, size_t size);
