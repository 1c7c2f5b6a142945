/*
 * A bounded, seeded run of the fuzz target: each file of the corpus, cut
 * and mutated. SPEC_FUZZ_RUNS raises the number (default 3000), and
 * SPEC_FUZZ_SEED changes the seed.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "spec/yaml.h"
#include "tests/fuzz/fuzz_spec.h"

#define CORPUS "tests/fuzz/corpus_spec"
#define FILES_MAX 64

struct input {
	char *data;
	size_t size;
};

static struct input corpus[FILES_MAX];
static size_t n_corpus;
static uint64_t seed = 20260611;

static uint64_t next(void)
{
	/* xorshift64: the same run everywhere. */
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static int read_corpus(void **state)
{
	_cleanup_closedir_ DIR *dir = opendir(CORPUS);
	struct fault f = FAULT_INIT;
	struct dirent *e;
	char path[512];

	(void)state;
	while (dir && (e = readdir(dir)) && n_corpus < FILES_MAX) {
		struct input *in = &corpus[n_corpus];

		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), CORPUS "/%s", e->d_name);
		if (file_read(path, YAML_SIZE_MAX, &in->data, &in->size, &f) ==
		    0)
			n_corpus++;
	}
	return n_corpus ? 0 : -1;
}

static int free_corpus(void **state)
{
	(void)state;
	while (n_corpus)
		free(corpus[--n_corpus].data);
	return 0;
}

/* One change: a byte, a cut, a doubled or a foreign piece. */
static size_t mutate(char *buf, size_t size, size_t room)
{
	const struct input *other = &corpus[next() % n_corpus];
	size_t at = size ? next() % size : 0, n;

	switch (next() % 5) {
	case 0:
		if (size)
			buf[at] = (char)next();
		return size;
	case 1:
		if (size)
			buf[at] = "{}[]:,-&*!|>'\"%@` \n\t#?<"[next() % 24];
		return size;
	case 2:
		n = next() % 32;
		n = n > size - at ? size - at : n;
		memmove(buf + at, buf + at + n, size - at - n);
		return size - n;
	case 3:
		n = next() % 64;
		n = n > size - at ? size - at : n;
		n = n > room - size ? room - size : n;
		memmove(buf + at + n, buf + at, size - at);
		return size + n;
	default:
		if (!other->size)
			return size;
		n = next() % 64 % other->size;
		n = n > size - at ? size - at : n;
		memcpy(buf + at, other->data + next() % (other->size - n), n);
		return size;
	}
}

static void corpus_as_it_is(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < n_corpus; i++)
		(void)LLVMFuzzerTestOneInput((uint8_t *)corpus[i].data,
					     corpus[i].size);
}

static void mutated(void **state)
{
	uint64_t runs = number("SPEC_FUZZ_RUNS", 3000), i;

	(void)state;
	seed = number("SPEC_FUZZ_SEED", seed);
	print_message("# %llu runs, seed %llu\n", (unsigned long long)runs,
		      (unsigned long long)seed);
	for (i = 0; i < runs; i++) {
		const struct input *in = &corpus[next() % n_corpus];
		size_t room = in->size + 256, size = in->size;
		_cleanup_free_ char *buf = malloc(room);
		uint64_t changes = 1 + next() % 6;

		assert_non_null(buf);
		memcpy(buf, in->data, in->size);
		while (changes--)
			size = mutate(buf, size, room);
		(void)LLVMFuzzerTestOneInput((uint8_t *)buf, size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(corpus_as_it_is),
		cmocka_unit_test(mutated),
	};

	return cmocka_run_group_tests(tests, read_corpus, free_corpus);
}
