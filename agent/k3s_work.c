#include "agent/k3s_work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <systemd/sd-journal.h>

#include "agent/child.h"
#include "agent/k3s_lines.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/parse.h"
#include "proto/keys.h"

#define JOURNAL_ENTRIES_MAX 200
#define BLOB_SIZE_MAX (UINT64_C(4) << 30)
#define TOKEN_SIZE_MAX 1024

static int map(const char *path, const void **ret_data, size_t *ret_size,
	       struct fault *f)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fault_errno(f, -errno, path, "cannot be read");
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    (uint64_t)st.st_size > BLOB_SIZE_MAX)
		return fault_set(f, -EINVAL, path, "is empty, too large or no file");
	p = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return fault_errno(f, -errno, path, "cannot be read");
	*ret_data = p;
	*ret_size = st.st_size;
	return 0;
}

static int check_digest(const struct k3s_verify *v, const void **ret_data,
			size_t *ret_size, struct fault *f)
{
	char have[65], want[65];
	uint8_t digest[32];
	int r;

	r = map(v->from, ret_data, ret_size, f);
	if (r < 0)
		return r;
	r = key_sha256(*ret_data, *ret_size, digest);
	if (r < 0)
		return fault_errno(f, r, v->from, "cannot be hashed");
	format_hex(digest, 32, have);
	format_hex(v->sha256, 32, want);
	if (strcmp(have, want) != 0)
		return fault_set(f, -EKEYREJECTED, v->from,
				 "has SHA-256 %s, wanted is %s", have, want);
	return 0;
}

int k3s_work_digest(void *arg, int out, struct fault *f)
{
	const void *data = NULL;
	size_t size = 0;

	(void)out;
	return check_digest(arg, &data, &size, f);
}

int k3s_work_verify(void *arg, int out, struct fault *f)
{
	const struct k3s_verify *v = arg;
	const void *data = NULL;
	size_t size = 0;
	int r;

	(void)out;
	r = check_digest(v, &data, &size, f);
	if (r < 0)
		return r;
	if (v->to[0])
		return file_write(v->to, 0755, data, size, f);
	if (access(v->from, X_OK) < 0)
		return fault_set(f, -EACCES, v->from, "is not executable");
	return 0;
}

static int open_journal(sd_journal **ret_journal)
{
	sd_journal *j = NULL;
	int r;

	r = sd_journal_open(&j, SD_JOURNAL_LOCAL_ONLY | SD_JOURNAL_SYSTEM);
	if (r < 0)
		return r;
	r = sd_journal_add_match(j, "_SYSTEMD_UNIT=" K3S_UNIT, 0);
	if (r >= 0)
		r = sd_journal_seek_tail(j);
	if (r < 0) {
		sd_journal_close(j);
		return r;
	}
	*ret_journal = j;
	return 0;
}

static int collect(sd_journal *j, const char *secret, struct k3s_lines *lines)
{
	static const char key[] = "MESSAGE=";
	char line[K3S_LINE_MAX + 1];
	const void *data;
	size_t size, i;
	int r = 0;

	for (i = 0; r >= 0 && i < JOURNAL_ENTRIES_MAX; i++) {
		if (sd_journal_previous(j) <= 0)
			break;
		if (sd_journal_get_data(j, "MESSAGE", &data, &size) < 0 ||
		    size < sizeof(key) - 1)
			continue;
		size -= sizeof(key) - 1;
		if (size > K3S_LINE_MAX)
			size = K3S_LINE_MAX;
		memcpy(line, (const char *)data + sizeof(key) - 1, size);
		line[size] = '\0';
		r = k3s_lines_add(lines, line, secret);
	}
	return r;
}

int k3s_work_journal(void *arg, int out, struct fault *f)
{
	const struct k3s_journal *a = arg;
	char secret[TOKEN_SIZE_MAX] = "";
	struct strlist found = STRLIST_INIT;
	struct k3s_lines lines = { 0 };
	sd_journal *j = NULL;
	size_t i;
	int r;

	(void)file_line(a->secret_file, secret, sizeof(secret), NULL);
	r = open_journal(&j);
	if (r < 0)
		return fault_errno(f, r, "journal", "cannot be read");
	r = collect(j, secret, &lines);
	sd_journal_close(j);
	if (r >= 0)
		r = k3s_lines_take(&lines, &found);
	for (i = 0; r >= 0 && i < found.n; i++) {
		r = child_write(out, found.v[i], strlen(found.v[i]));
		if (r >= 0)
			r = child_write(out, "\n", 1);
	}
	strlist_done(&found);
	return r < 0 ? fault_errno(f, r, "journal", "cannot be read") : 0;
}
