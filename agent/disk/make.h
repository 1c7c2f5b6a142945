/*
 * make.h - one visit to one disk: look, and where it is wanted and the disk
 * is proven blank, make its filesystem. Nothing else is ever written, and
 * never to anything but the device that the note names.
 */
#pragma once

#include "agent/disk/note.h"

/* Always leaves a NAME.seen when the note could be read. */
int disk_visit(const char *dir, const char *name, struct fault *f);
