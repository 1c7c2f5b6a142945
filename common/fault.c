#include "common/fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Length of a valid UTF-8 sequence at `s`, 0 when it is not one. */
static unsigned int utf8_length(const unsigned char *s)
{
	unsigned int n, i;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	for (i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong, a surrogate, or beyond U+10FFFF: no character at all. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

void fault_sanitize(char *text)
{
	unsigned char *s = (unsigned char *)text;

	while (*s) {
		unsigned int n = utf8_length(s);

		/* C1 controls are two bytes in UTF-8: c2 80 to c2 9f. */
		if (n == 0 || *s < 0x20 || *s == 0x7f) {
			*s++ = '?';
		} else if (n == 2 && s[0] == 0xc2 && s[1] < 0xa0) {
			*s++ = '?';
			*s++ = '?';
		} else {
			s += n;
		}
	}
}

static void fault_put(struct fault *f, int err, const char *object,
		      const char *suffix, const char *fmt, va_list ap)
{
	int n;

	f->err = err;
	(void)snprintf(f->object, sizeof(f->object), "%s",
		       object ? object : "");
	n = vsnprintf(f->text, sizeof(f->text), fmt, ap);
	if (n >= 0 && (size_t)n < sizeof(f->text) && suffix)
		(void)snprintf(f->text + n, sizeof(f->text) - (size_t)n,
			       ": %s", suffix);
	fault_sanitize(f->object);
	fault_sanitize(f->text);
}

int fault_set(struct fault *f, int err, const char *object, const char *fmt,
	      ...)
{
	va_list ap;

	if (f && !f->err) {
		va_start(ap, fmt);
		fault_put(f, err, object, NULL, fmt, ap);
		va_end(ap);
	}
	return err;
}

int fault_errno(struct fault *f, int err, const char *object, const char *fmt,
		...)
{
	va_list ap;

	if (f && !f->err) {
		va_start(ap, fmt);
		fault_put(f, err, object, strerror(-err), fmt, ap);
		va_end(ap);
	}
	return err;
}

void fault_clear(struct fault *f)
{
	f->err = 0;
	f->object[0] = '\0';
	f->text[0] = '\0';
}

const char *fault_str(const struct fault *f, char *buf, unsigned long size)
{
	if (!f->err)
		(void)snprintf(buf, size, "no error");
	else if (f->object[0])
		(void)snprintf(buf, size, "%s: %s", f->object, f->text);
	else
		(void)snprintf(buf, size, "%s", f->text);
	return buf;
}
