/* Installed memory by SMBIOS, and what else is observed of a machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scratch.h"

#include "agent/hardware.h"
#include "agent/smbios.h"
#include "coordinator/memory_rule.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static uint8_t table[8192];
static size_t used;

static int fresh(void **state)
{
	used = 0;
	return scratch_make(state);
}

static void add(const uint8_t *s, size_t size, const char *texts)
{
	assert_true(used + size + strlen(texts) + 2 <= sizeof(table));
	memcpy(table + used, s, size);
	used += size;
	memcpy(table + used, texts, strlen(texts));
	used += strlen(texts);
	table[used++] = 0;	/* of the text, or one of the two of none */
	table[used++] = 0;
}

static void add_array(unsigned int handle, uint8_t use)
{
	const uint8_t s[15] = { 16, 15, (uint8_t)handle, (uint8_t)(handle >> 8),
				3, use };

	add(s, sizeof(s), "");
}

static void add_device(unsigned int array, unsigned int size, uint32_t extended,
		       uint8_t technology, uint8_t length)
{
	uint8_t s[0x54] = { 17, length, 1, 0, (uint8_t)array,
			    (uint8_t)(array >> 8) };

	s[0x0c] = (uint8_t)size;
	s[0x0d] = (uint8_t)(size >> 8);
	s[0x1c] = (uint8_t)extended;
	s[0x1d] = (uint8_t)(extended >> 8);
	s[0x1e] = (uint8_t)(extended >> 16);
	s[0x1f] = (uint8_t)(extended >> 24);
	s[0x28] = technology;
	add(s, length, "DIMM 0");
}

static void b08_installed_memory(void **state)
{
	static const struct {
		unsigned int array, size;
		uint32_t extended;
		uint8_t technology, length;
		uint64_t bytes;
	} t[] = {
		{ 7, 16384, 0, 3, 0x54, 16 * GIB },
		{ 7, 0x7fff, 65536, 3, 0x54, 64 * GIB },
		{ 7, 0x7fff, 65536, 0, 0x1b, 0 },	/* before 2.7 */
		{ 7, 0, 0, 3, 0x54, 0 },		/* an empty slot */
		{ 7, 0xffff, 0, 3, 0x54, 0 },		/* unknown */
		{ 7, 0x8000 | 512, 0, 3, 0x28, 512 * 1024 },
		{ 8, 16, 0, 3, 0x54, 0 },		/* the flash of the ROM */
		{ 7, 1024, 0, 4, 0x54, 0 },		/* an NVDIMM */
	};
	uint64_t sum = 0;
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		used = 0;
		add_array(8, 5);
		add_array(7, 3);
		add_device(t[i].array, t[i].size, t[i].extended,
			   t[i].technology, t[i].length);
		assert_int_equal(smbios_memory(table, used), t[i].bytes);
	}
	used = 0;
	add_array(7, 3);
	for (i = 0; i < N(t); i++) {
		add_device(t[i].array, t[i].size, t[i].extended,
			   t[i].technology, t[i].length);
		sum += t[i].bytes;
	}
	assert_int_equal(smbios_memory(table, used), sum);
}

/* Cut anywhere and filled with anything: no more than that is read. */
static void a_broken_table_is_bounded(void **state)
{
	uint8_t *copy;
	size_t i, k;

	(void)state;
	add_array(7, 3);
	add_device(7, 1024, 0, 3, 0x54);
	add_device(7, 2048, 0, 3, 0x54);
	for (i = 0; i <= used; i++) {
		copy = malloc(i ? i : 1);	/* exact, for the sanitizer */
		assert_non_null(copy);
		memcpy(copy, table, i);
		assert_true(smbios_memory(copy, i) <= 3 * GIB);
		free(copy);
	}
	for (i = 0; i < used; i++) {
		copy = malloc(used);
		assert_non_null(copy);
		for (k = 0; k < 4; k++) {
			memcpy(copy, table, used);
			copy[i] = (uint8_t)(k * 85);
			(void)smbios_memory(copy, used);
		}
		free(copy);
	}
}

static void what_is_observed(void **state)
{
	static const char tables[] = "/sys/firmware/dmi/tables/DMI";
	struct hardware hw;

	(void)state;
	hardware_read(scratch, &hw);
	assert_int_equal(hw.memory_total, 0);
	assert_int_equal(hw.memory_installed, 0);
	assert_string_equal(hw.firmware, "");
	put("/proc/meminfo", "MemTotal:       2048 kB\nMemFree: 1 kB\n");
	put("/sys/class/dmi/id/bios_vendor", "HP\n");
	put("/sys/class/dmi/id/bios_date", "10/\033[1m2025\n");
	put("/sys/class/dmi/id/product_name", "T\n");
	scratch_dir("/var/lib");
	put(tables, "");
	add_array(7, 3);
	add_device(7, 2, 0, 3, 0x54);
	assert_int_equal(file_write(scratch_path(tables), 0400, table, used,
				    NULL), 0);
	hardware_read(scratch, &hw);
	assert_int_equal(hw.memory_total, 2 * MIB);
	assert_int_equal(hw.memory_installed, 2 * MIB);
	assert_true(hw.disk_size > 0 && hw.disk_free <= hw.disk_size);
	assert_null(strchr(hw.firmware, '\033'));
	assert_memory_equal(hw.firmware, "HP 10/", 6);
	assert_string_equal(hw.product, "T");
}

static void b08_when_memory_is_missing(void **state)
{
	static const struct {
		const char *percent;
		uint64_t have, whole;
		bool is_short;
	} t[] = {
		{ "5%", 95 * GIB, 100 * GIB, false },
		{ "5%", 95 * GIB - MIB, 100 * GIB, true },
		{ "2.5%", 975 * GIB, 1000 * GIB, false },
		{ "2.5%", 974 * GIB, 1000 * GIB, true },
		{ "0%", GIB, GIB, false },
		{ "0%", GIB - MIB, GIB, true },
		{ "5%", 3 * GIB, GIB, false },		/* more than installed */
		{ "5%", 0, UINT64_MAX, true },
		{ "99%", 0, UINT64_MAX, true },
	};
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++)
		assert_int_equal(memory_is_short(t[i].have, t[i].whole,
						 memory_thousandths(
							 t[i].percent)),
				 t[i].is_short);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(b08_installed_memory, fresh,
						scratch_drop),
		cmocka_unit_test_setup_teardown(a_broken_table_is_bounded,
						fresh, scratch_drop),
		cmocka_unit_test_setup_teardown(what_is_observed, fresh,
						scratch_drop),
		cmocka_unit_test(b08_when_memory_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
