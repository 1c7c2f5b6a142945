#include "agent/kept.h"

#include <errno.h>
#include <stdlib.h>

#include "common/file.h"

void kept_done(struct kept *k)
{
	stamps_done(&k->stamps);
	free(k->text);
	*k = KEPT_INIT;
}

/* What cannot be noted is read each time. */
static int read_anew(struct kept *k, const char *path, size_t limit,
		     struct fault *f)
{
	int noted, r;

	kept_done(k);
	noted = stamps_note(&k->stamps, path);
	r = file_read(path, limit, &k->text, &k->size, f);
	if (noted == 0 && (r == 0 || r == -ENOENT))
		stamps_end(&k->stamps);
	return r;
}

int kept_read(struct kept *k, const char *path, size_t limit,
	      const char **ret_text, size_t *ret_size, struct fault *f)
{
	int r = 0;

	if (!stamps_fresh(&k->stamps))
		r = read_anew(k, path, limit, f);
	else if (!k->text)
		r = -ENOENT;
	if (r < 0)
		return r;
	*ret_text = k->text;
	*ret_size = k->size;
	return 0;
}
