/*
 * confdirs.h - drop-in files in the search order of systemd: /etc, /run,
 * /usr/local/lib, /usr/lib and /lib, each with the same sub-directory.
 *
 * A name in an earlier directory hides the same name in a later one; a
 * link to /dev/null or an empty file hides it altogether. Files are listed
 * sorted by name, whatever their directory (sysctl.d(5), modprobe.d(5)).
 * Only reads, and only below the root that it was given.
 */
#pragma once

#include <stddef.h>

#include "common/fault.h"
#include "common/strlist.h"

struct stamps;		/* agent/stamps.h */
struct wake;		/* agent/wake.h */

#define CONFDIRS_FILES_MAX 1024		/* per sub-directory */
#define CONFDIRS_FILE_SIZE_MAX 262144	/* bytes of one file */

/*
 * Lists files "*.conf" of `sub` ("sysctl.d") as paths on the node (without
 * the root). -E2BIG, -ENOMEM; directories that cannot be read are skipped
 * when absent and an error otherwise.
 */
int confdirs_list(const char *root, const char *sub,
		  struct strlist *ret_files, struct fault *f);

/*
 * Notes the directories and every file whose content or absence decides what
 * confdirs_lines() gives. Note before reading. As confdirs_list().
 */
int confdirs_note(const char *root, const char *sub, struct stamps *stamps,
		  struct fault *f);

/* Wakes when a file of `sub` comes, goes or changes. Again: only adjusts. */
int confdirs_watch(const char *root, const char *sub, struct wake *wake,
		   struct fault *f);

/* Called per line, without its newline; may write into `line`. */
typedef int (*confdirs_line)(void *userdata, const char *file,
			     unsigned int number, char *line);

/*
 * Calls `fn` for each line of each file, in order. A negative return of
 * `fn` ends it. A file that cannot be read is skipped after the first fault
 * was noted, and that error is returned at the end (H18).
 */
int confdirs_lines(const char *root, const char *sub, confdirs_line fn,
		   void *userdata, struct fault *f);

/* The same for one text that is already there. */
int confdirs_text(const char *file, char *text, confdirs_line fn,
		  void *userdata);
