#include "common/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/fault.h"

#define LOG_LINE_MAX 2048

static enum log_level log_max = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
	log_max = level;
}

static const char *level_name(enum log_level level)
{
	switch (level) {
	case LOG_LEVEL_ERROR:
		return "error";
	case LOG_LEVEL_WARNING:
		return "warning";
	case LOG_LEVEL_NOTICE:
	case LOG_LEVEL_INFO:
		return "info";
	case LOG_LEVEL_DEBUG:
		return "debug";
	}
	return "unknown";
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char text[LOG_LINE_MAX];
	va_list ap;

	if (level > log_max)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fault_sanitize(text);
	/* One write each: lines of several processes must not interleave. */
	if (getenv("JOURNAL_STREAM"))
		(void)fprintf(stderr, "<%d>%s\n", (int)level, text);
	else
		(void)fprintf(stderr, "%s: %s\n", level_name(level), text);
}
