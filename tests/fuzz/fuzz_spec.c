/*
 * Any bytes as a spec: no crash, no leak, no spec beside an error, and
 * what was accepted can be derived and explained for every node.
 *
 * build.mk says how to run it with libFuzzer;
 * tests/unit/test_spec_fuzz.c runs the same function on a bounded number of
 * mutations of the same corpus.
 */
#include "tests/fuzz/fuzz_spec.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "spec/derive.h"
#include "spec/print.h"
#include "spec/spec.h"
#include "spec/yaml.h"

#define NODES_DERIVED 8	/* enough of many equal ones */

static void use_node(const struct spec *spec, size_t node)
{
	struct spec_items items = SPEC_ITEMS_INIT;
	struct desired *d = NULL;
	struct fault f = FAULT_INIT;
	char *text = NULL;

	if (spec_derive_node(spec, node, &d, &f) < 0)
		abort();
	(void)desired_free(d);
	if (spec_explain_node(spec, node, &items, &f) < 0)
		abort();
	if (spec_print_json(&items, &text) == 0)
		free(text);
	spec_items_done(&items);
}

static void use(const struct spec *spec)
{
	struct strlist sans = STRLIST_INIT;
	char *text = NULL;
	size_t i;

	for (i = 0; i < spec->n_nodes && i < NODES_DERIVED; i++)
		use_node(spec, i);
	if (spec->one_box)
		use_node(spec, 0);
	if (spec_tls_sans(spec, &sans) == 0)
		strlist_done(&sans);
	if (yaml_write(spec->root, 2, &text) == 0)
		free(text);
}

static void load(const uint8_t *data, size_t size, unsigned int flags)
{
	struct spec_problems p = SPEC_PROBLEMS_INIT;
	struct spec *spec = NULL;
	struct fault f = FAULT_INIT;
	char *text = NULL;
	int r = spec_load_text("fuzz", (const char *)data, size, flags, &p,
			       &spec, &f);

	if ((r == 0) != (spec != NULL) || (r == 0) != (p.errors == 0))
		abort();
	if (spec)
		use(spec);
	(void)spec_free(spec);
	if (spec_print_problems("fuzz", &p, &text) == 0)
		free(text);
	spec_problems_done(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	load(data, size, 0);
	load(data, size, SPEC_ONE_BOX);
	return 0;
}
