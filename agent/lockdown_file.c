#include "agent/lockdown_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/fnv.h"
#include "common/parse.h"

#define HEAD "garboard-lockdown 1\n"
#define LINE_SIZE_MAX 80

static const char *const names[LOCKDOWN_PARTS] = {
	"confirmed", "trial", "previous", "addresses",
};

const char *lockdown_part_name(enum lockdown_part part)
{
	return part < LOCKDOWN_PARTS ? names[part] : "unknown";
}

void lockdown_file_done(struct lockdown_file *file)
{
	size_t i;

	for (i = 0; i < LOCKDOWN_POLICIES; i++)
		armed_done(&file->policy[i]);
	*file = (struct lockdown_file){ 0 };
}

static uint64_t part_sum(enum lockdown_part part, const char *bytes,
			 size_t size)
{
	uint64_t sum = fnv_add(FNV_BASIS, names[part], strlen(names[part]));

	return fnv_add(fnv_add(sum, "\n", 1), bytes, size);
}

/* ---- writing ---- */

static void put_part(FILE *out, enum lockdown_part part, const char *text)
{
	size_t size = strlen(text);

	(void)fprintf(out, "part %s %zu %016" PRIx64 "\n%s", names[part],
		      size, part_sum(part, text, size), text);
}

static int put_policies(FILE *out, const struct lockdown_file *file)
{
	unsigned int i;
	int r;

	for (i = 0; i < LOCKDOWN_POLICIES; i++) {
		_cleanup_free_ char *text = NULL;

		if (!file->policy[i].d)
			continue;
		r = armed_format(&file->policy[i], &text);
		if (r < 0)
			return r;
		put_part(out, (enum lockdown_part)i, text);
	}
	return 0;
}

int lockdown_file_format(const struct lockdown_file *file, char **ret_text)
{
	char addresses[ROUTING_RECORD_TEXT_MAX];
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int r;

	if (!out)
		return -ENOMEM;
	(void)fputs(HEAD, out);
	r = put_policies(out, file);
	if (file->has_addresses) {
		(void)routing_record_format(&file->addresses, addresses);
		put_part(out, LOCKDOWN_ADDRESSES, addresses);
	}
	if (fflush(out) != 0)
		r = -ENOMEM;
	else
		(void)fprintf(out, "end %016" PRIx64 "\n",
			      fnv_add(FNV_BASIS, text, size));
	if (ferror(out))
		r = -ENOMEM;
	if (fclose(out) != 0 || r < 0) {
		free(text);
		return -ENOMEM;
	}
	*ret_text = text;
	return 0;
}

/* ---- reading ---- */

struct reader {
	const char *text;
	size_t size, at;
	struct lockdown_file *file;
	struct fault *f;
	bool damaged;
};

static void damage(struct reader *rd, const char *object, const char *why)
{
	(void)fault_set(rd->f, -EBADMSG, object, "damaged: %s", why);
	rd->damaged = true;
}

/* The next line without its end; false when there is no whole one left. */
static bool next_line(struct reader *rd, char line[LINE_SIZE_MAX])
{
	const char *from = rd->text + rd->at, *end;
	size_t n;

	end = memchr(from, '\n', rd->size - rd->at);
	if (!end)
		return false;
	n = (size_t)(end - from);
	rd->at += n + 1;
	/* No line of our own is longer; a cut one is no line of ours. */
	if (n >= LINE_SIZE_MAX)
		n = LINE_SIZE_MAX - 1;
	(void)memcpy(line, from, n);
	line[n] = '\0';
	return true;
}

static int read_sum(const char *text, uint64_t *ret_sum)
{
	uint8_t bytes[8];
	uint64_t sum = 0;
	size_t i;

	if (parse_hex(text, bytes, sizeof(bytes)) < 0)
		return -EINVAL;
	for (i = 0; i < sizeof(bytes); i++)
		sum = sum << 8 | bytes[i];
	*ret_sum = sum;
	return 0;
}

static int take_part(struct reader *rd, enum lockdown_part part,
		     const char *bytes, size_t size)
{
	_cleanup_free_ char *text = strndup(bytes, size);
	struct fault f = FAULT_INIT;
	int r;

	if (!text)
		return -ENOMEM;
	if (strlen(text) != size)
		return -EBADMSG;
	if (part != LOCKDOWN_ADDRESSES) {
		if (rd->file->policy[part].d)
			return -EBADMSG;
		return armed_parse(text, &rd->file->policy[part], &f);
	}
	if (rd->file->has_addresses)
		return -EBADMSG;
	r = routing_record_parse(text, &rd->file->addresses);
	rd->file->has_addresses = r == 0;
	return r;
}

/* "part NAME BYTES SUM": 0 and the reader behind it, or -EBADMSG. */
static int read_part(struct reader *rd, char *line)
{
	char *save = NULL, *word = strtok_r(line, " ", &save);
	char *name = strtok_r(NULL, " ", &save);
	char *bytes = strtok_r(NULL, " ", &save);
	char *sum_text = strtok_r(NULL, "", &save);
	uint64_t size, sum;
	unsigned int i;
	int r;

	if (!word || !name || !bytes || !sum_text ||
	    parse_u64(bytes, LOCKDOWN_FILE_SIZE_MAX, &size) < 0 ||
	    read_sum(sum_text, &sum) < 0 || size > rd->size - rd->at)
		return -EBADMSG;
	for (i = 0; i < LOCKDOWN_PARTS; i++)
		if (strcmp(names[i], name) == 0)
			break;
	if (i == LOCKDOWN_PARTS ||
	    part_sum((enum lockdown_part)i, rd->text + rd->at, size) != sum)
		return -EBADMSG;
	r = take_part(rd, (enum lockdown_part)i, rd->text + rd->at, size);
	if (r == 0)
		rd->at += size;
	return r;
}

/* The last line: it must be the last, and all before it as it was. */
static bool ends_well(const struct reader *rd, const char *line, size_t before)
{
	uint64_t sum;

	return rd->at == rd->size && read_sum(line + 4, &sum) == 0 &&
	       sum == fnv_add(FNV_BASIS, rd->text, before);
}

/* What is damaged is passed over line by line, up to the next part. */
static int read_parts(struct reader *rd)
{
	char line[LINE_SIZE_MAX];
	bool ended = false;
	int r;

	while (!ended) {
		size_t before = rd->at;

		if (!next_line(rd, line))
			break;
		r = before == 0 ? 0 : -EBADMSG;
		if (strncmp(line, "part ", 5) == 0)
			r = read_part(rd, line);
		else if (strncmp(line, "end ", 4) == 0)
			ended = ends_well(rd, line, before);
		if (r == -ENOMEM)
			return r;
		if (r < 0 && !ended)
			damage(rd, "lockdown", "a part of it does not add up");
	}
	if (!ended)
		damage(rd, "lockdown", "it does not end as it should");
	return 0;
}

int lockdown_file_parse(const char *text, size_t size,
			struct lockdown_file *ret_file, struct fault *f)
{
	struct lockdown_file file = { 0 };
	struct reader rd = { .text = text, .size = size, .file = &file,
			     .f = f };
	int r;

	if (size > LOCKDOWN_FILE_SIZE_MAX)
		return fault_set(f, -E2BIG, "lockdown", "is too large");
	if (size < strlen(HEAD) || memcmp(text, HEAD, strlen(HEAD)) != 0)
		damage(&rd, "lockdown", "it does not begin as it should");
	r = read_parts(&rd);
	if (r < 0) {
		lockdown_file_done(&file);
		return fault_errno(f, r, "lockdown", "read");
	}
	*ret_file = file;
	return rd.damaged;
}

/* ---- the files ---- */

const char *lockdown_file_path(const char *state_dir, bool twin,
			       char buf[LOCKDOWN_PATH_MAX])
{
	(void)snprintf(buf, LOCKDOWN_PATH_MAX, "%s/lockdown%s", state_dir,
		       twin ? ".copy" : "");
	return buf;
}

int lockdown_file_load(const char *path, struct lockdown_file *ret_file,
		       struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r = file_read(path, LOCKDOWN_FILE_SIZE_MAX, &text, &size, f);

	return r < 0 ? r : lockdown_file_parse(text, size, ret_file, f);
}

int lockdown_file_save(const char *state_dir, const struct lockdown_file *file,
		       struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	char path[LOCKDOWN_PATH_MAX];
	int r = lockdown_file_format(file, &text), i;

	if (r < 0)
		return fault_errno(f, r, "lockdown", "write");
	for (i = 0; i < 2 && r == 0; i++)
		r = file_write(lockdown_file_path(state_dir, i == 1, path),
			       0600, text, strlen(text), f);
	return r;
}
