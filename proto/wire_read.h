/*
 * wire_read.h - protobuf-c struct to value, by the tables of wire.h.
 * Inside proto/wire*.c only.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "proto/wire.h"

/*
 * Fills a zeroed value. On failure it is partly filled and must be released
 * by wire_done().
 */
int wire_read(const struct wire_message *m, const ProtobufCMessage *msg,
	      void *value, struct fault *f);

/* "Message.field" into the fault, with the reason. Returns err. */
int wire_refuse(struct fault *f, int err, const struct wire_message *m,
		const struct wire_field *row, const char *why);
