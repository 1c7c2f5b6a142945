/*
 * wire_write.h - value to protobuf-c struct, by the tables of wire.h.
 * Inside proto/wire*.c only.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "proto/wire.h"

/*
 * Makes the message; protobuf_c_message_free_unpacked() releases it. The
 * texts of WIRE_EVIDENCE rows are cleaned and cut, their lists are cut.
 * Nothing else is judged here: the reader is the one place of judgement.
 */
int wire_write(const struct wire_message *m, const void *value,
	       ProtobufCMessage **ret_msg, struct fault *f);
