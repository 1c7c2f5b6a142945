/*
 * log.h - one line per fact on standard error.
 *
 * Under systemd (JOURNAL_STREAM set) each line carries the syslog priority
 * prefix of sd-daemon(3); elsewhere it is "level: text". Only main, the
 * engine and the sequencer log above debug (H15). Lines are bounded and
 * control characters are replaced. Never pass a secret.
 */
#pragma once

enum log_level {
	LOG_LEVEL_ERROR = 3,	/* numbers of syslog(3) */
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_NOTICE = 5,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

/* Lines above `level` are dropped. The default is LOG_LEVEL_INFO. */
void log_set_level(enum log_level level);

void log_line(enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)
