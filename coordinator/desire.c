#include "coordinator/desire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/desired_wire.h"
#include "proto/keys.h"
#include "spec/derive.h"

static int number(struct desired *d, struct fault *f)
{
	uint8_t digest[32], *bytes = NULL;
	uint64_t generation;
	size_t size = 0;
	int r = desired_encode(d, &bytes, &size, f);

	if (r == 0)
		r = key_sha256(bytes, size, digest);
	free(bytes);
	if (r < 0)
		return r;
	memcpy(&generation, digest, sizeof(generation));
	generation &= INT64_MAX;
	d->generation = generation ? generation : 1;
	return 0;
}

int desire_node(const struct spec *spec, size_t node,
		struct desired **ret_desired, struct fault *f)
{
	struct desired *d = NULL;
	int r = spec_derive_node(spec, node, &d, f);

	if (r == 0)
		r = number(d, f);
	if (r < 0) {
		(void)desired_free(d);
		return r;
	}
	*ret_desired = d;
	return 0;
}
